//! How each vector is made: rule by rule, first what keeps it, then what breaks it.

use registration::vrf::{Form, VRF_JSON, VrfRule, kid_of};
use scitt::cbor::Value as Cbor;
use scitt::{Algorithm, Signer};
use serde_json::{Value, json};
use testkit::{NOW, ed25519, es384, receipt_json, verifier};

use crate::Case;
use crate::draft::{Draft, jose_canonical, text_with};

/// Every case.
pub fn all() -> Vec<Case> {
    [forms(), json(), header(), chain(), identity(), tiers(), counters(), verdicts(), formats(), versions()]
        .concat()
}

fn keeps(rule: VrfRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case {
        rule,
        name,
        why,
        keeps: true,
        statement: draft.sign(),
        options: json!({}),
        log: Vec::new(),
        at: NOW,
    }
}

fn breaks(rule: VrfRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case { keeps: false, ..keeps(rule, name, why, draft) }
}

impl Case {
    fn under(self, options: Value) -> Case {
        Case { options, ..self }
    }

    fn after(self, draft: Draft) -> Case {
        Case { log: vec![draft.sign()], ..self }
    }

    fn at(self, at: u64) -> Case {
        Case { at, ..self }
    }
}

/// The receipt, with one member of the top level set.
fn set(name: &'static str, value: Value) -> Draft {
    Draft::changed(|receipt| receipt[name] = value)
}

/// The receipt, with one member of an inner object set.
fn set_in(object: &'static str, name: &'static str, value: Value) -> Draft {
    Draft::changed(|receipt| receipt[object][name] = value)
}

fn remove(name: &'static str) -> Draft {
    Draft::changed(|receipt| drop(receipt.as_object_mut().unwrap().remove(name)))
}

fn remove_from(object: &'static str, name: &'static str) -> Draft {
    Draft::changed(|receipt| drop(receipt[object].as_object_mut().unwrap().remove(name)))
}

fn plain() -> Draft {
    Draft::of(&receipt_json(0))
}

fn canonical() -> Vec<u8> {
    jose_canonical(&receipt_json(0))
}

fn forms() -> Vec<Case> {
    use VrfRule::{ByteString, Form as FormRule, FormMap};
    let json = canonical();
    let indefinite = [&[0x5f][..], &Form::B.wrap(&json), &[0xff]].concat();
    let long_head = [&[0x5a, 0, 0, 0x01, 0x4d][..], &json].concat();
    let trailing = [Form::B.wrap(&json), vec![0]].concat();
    let nested = Form::B.wrap(&Form::B.wrap(&json));
    let map =
        [0xa1, 0x6b].into_iter().chain(*b"vrf_version").chain([0x63]).chain(*b"1.0").collect::<Vec<u8>>();
    vec![
        keeps(
            FormRule,
            "json-alone",
            "form A: bare JSON is what application/vrf+json holds",
            Draft::of_payload(json.clone()).content_type(VRF_JSON),
        ),
        breaks(
            FormRule,
            "json-as-cbor",
            "bare JSON is no CBOR, so application/vrf+cbor cannot hold it",
            Draft::of_payload(json.clone()),
        ),
        breaks(FormRule, "cbor-as-json", "a byte string is no JSON", plain().content_type(VRF_JSON)),
        breaks(FormRule, "empty-payload", "nothing is neither form", Draft::of_payload(Vec::new())),
        keeps(FormMap, "byte-string", "form B: a byte string that holds the canonical JSON", plain()),
        breaks(
            FormMap,
            "map",
            "form C, a CBOR map, has more than one encoding and is not admitted",
            Draft::of_payload(map.clone()),
        ),
        breaks(
            FormMap,
            "map-as-json",
            "the first byte decides, whatever the content type",
            Draft::of_payload(map).content_type(VRF_JSON),
        ),
        keeps(ByteString, "shortest-head", "333 bytes take a head of three: 59 01 4d", plain()),
        breaks(ByteString, "longer-head", "the same length in a head of five", Draft::of_payload(long_head)),
        breaks(ByteString, "indefinite", "a byte string in chunks", Draft::of_payload(indefinite)),
        breaks(ByteString, "trailing-byte", "something follows the byte string", Draft::of_payload(trailing)),
        breaks(
            ByteString,
            "cut-short",
            "the head promises more than there is",
            Draft::of_payload(vec![0x59, 0x01, 0x4d, b'{']),
        ),
        breaks(
            VrfRule::Json,
            "wrapped-twice",
            "a byte string within the byte string is no JSON",
            Draft::of_payload(nested),
        ),
    ]
}

fn json() -> Vec<Case> {
    use VrfRule::{Canonical, DuplicateMember, Integer, Json, LoneSurrogate, MemberName};
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    vec![
        keeps(Json, "other-scripts", "strings may hold any text", set("note", json!("naïve 測試 🦀"))),
        breaks(Json, "cut-short", "the text ends within the object", Draft::of_json(&canonical()[..332])),
        breaks(
            Json,
            "byte-order-mark",
            "JSON begins with no byte order mark",
            Draft::of_json(&[b"\xef\xbb\xbf", &canonical()[..]].concat()),
        ),
        breaks(Json, "not-utf-8", "a string holds a byte that is not UTF-8", Draft::of_json(&broken_utf8())),
        breaks(
            Json,
            "too-deep",
            "arrays nested beyond the bound",
            Draft::of_json(&text_with("{\"hashes\"", &format!("{{\"a\":{deep},\"hashes\""))),
        ),
        keeps(
            DuplicateMember,
            "same-name-elsewhere",
            "two objects may use one name",
            set_in("metadata", "total", json!(1)),
        ),
        breaks(
            DuplicateMember,
            "two-verdicts",
            "one reader would see pass, the next fail",
            Draft::of_json(&text_with("\"verdict\":\"pass\"", "\"verdict\":\"fail\",\"verdict\":\"pass\"")),
        ),
        breaks(
            DuplicateMember,
            "escaped-twin",
            "the same name, once spelled with an escape",
            Draft::of_json(&text_with("\"tier\":0", "\"tier\":3,\"\\u0074ier\":0")),
        ),
        keeps(
            LoneSurrogate,
            "whole-pair",
            "a character outside the basic plane, in UTF-8",
            set("note", json!("𝄞")),
        ),
        breaks(
            LoneSurrogate,
            "half-pair",
            "half a surrogate pair has no UTF-8",
            Draft::of_json(&text_with("v/1", "\\ud834")),
        ),
        keeps(
            Integer,
            "largest",
            "2^53 - 1 is exact for every reader",
            set("n", json!(9_007_199_254_740_991_i64)),
        ),
        breaks(
            Integer,
            "too-large",
            "2^53 is not told from 2^53 + 1 by every reader",
            Draft::of_json(&number("9007199254740992")),
        ),
        breaks(Integer, "fraction", "floats print differently", Draft::of_json(&number("0.5"))),
        breaks(Integer, "one-point-zero", "an integer in a float's clothes", Draft::of_json(&number("1.0"))),
        breaks(Integer, "exponent", "an integer with an exponent", Draft::of_json(&number("1e3"))),
        breaks(Integer, "minus-zero", "zero has one spelling", Draft::of_json(&number("-0"))),
        keeps(
            MemberName,
            "last-of-the-range",
            "U+D7FF is the last character that every order puts in one place",
            set("\u{d7ff}", json!(1)),
        ),
        breaks(
            MemberName,
            "private-use",
            "from U+E000 on, UTF-16 and code points sort differently",
            set("\u{e000}", json!(1)),
        ),
        breaks(
            MemberName,
            "emoji",
            "surrogate pairs sort before U+E000 in UTF-16 and after it elsewhere",
            set("🦀", json!(1)),
        ),
        breaks(MemberName, "control-character", "a name nobody can read", set("\u{1}", json!(1))),
        keeps(
            Canonical,
            "escapes",
            "control characters have one escape each",
            set("note", json!("a\n\u{1}\"\\")),
        ),
        breaks(
            Canonical,
            "white-space",
            "a blank between tokens",
            Draft::of_json(&text_with("\"tier\":0", "\"tier\": 0")),
        ),
        breaks(
            Canonical,
            "unsorted",
            "the members are not in order",
            Draft::of_json(&text_with("\"tier\":0,\"verdict\":\"pass\"", "\"verdict\":\"pass\",\"tier\":0")),
        ),
        breaks(
            Canonical,
            "needless-escape",
            "a slash needs no escape",
            Draft::of_json(&text_with("v/1", "v\\/1")),
        ),
        breaks(
            Canonical,
            "trailing-newline",
            "section 5.3: no trailing newline",
            Draft::of_json(&[&canonical()[..], b"\n"].concat()),
        ),
    ]
}

fn number(text: &str) -> Vec<u8> {
    text_with("\"receipt_id\"", &format!("\"n\":{text},\"receipt_id\""))
}

fn broken_utf8() -> Vec<u8> {
    let text = text_with("v/1", "v?1");
    text.iter().map(|byte| if *byte == b'?' { 0xff } else { *byte }).collect()
}

fn header() -> Vec<Case> {
    use VrfRule::{Algorithm as AlgorithmRule, IssuerAgrees, IssuerDidKey, Kid, Labels};
    let did = verifier().public_key().did_key();
    let jwk = verifier().public_key().did_jwk();
    let other = ed25519([7; 32]).public_key().did_key();
    let fully = || verifier().with_algorithm(Algorithm::Ed25519).unwrap();
    vec![
        keeps(Labels, "all-present", "the five labels of section 5.2", plain()),
        breaks(Labels, "no-version", "label -70001 is absent", plain().without(-70001)),
        breaks(Labels, "no-issuer", "label -70002 is absent", plain().without(-70002)),
        breaks(Labels, "no-receipt-id", "label -70003 is absent", plain().without(-70003)),
        breaks(
            Labels,
            "version-as-number",
            "label -70001 is text",
            plain().raw_label(-70001, Cbor::Unsigned(1)),
        ),
        breaks(
            Labels,
            "receipt-id-as-bytes",
            "label -70003 is text, not the UUID's bytes",
            plain().raw_label(-70003, Cbor::from(vec![0x11; 16])),
        ),
        keeps(IssuerDidKey, "ed25519", "the issuer is the did:key of its Ed25519 key", plain()),
        breaks(IssuerDidKey, "did-jwk", "the same key under another DID method", plain().iss(&jwk)),
        keeps(IssuerAgrees, "same", "-70002 repeats iss", plain()),
        breaks(
            IssuerAgrees,
            "another-verifier",
            "-70002 claims somebody else's work",
            plain().label(-70002, &other),
        ),
        keeps(Kid, "did-with-fragment", "kid is the DID and its only fragment", plain()),
        breaks(Kid, "did-alone", "kid names a key, not a subject", plain().kid(&did)),
        breaks(Kid, "fragment-alone", "a relative kid", plain().kid("#key-1")),
        breaks(Kid, "another-key", "kid names the key of another verifier", plain().kid(&kid_of(&other))),
        keeps(AlgorithmRule, "eddsa", "alg -8, as section 5.1 says", plain()),
        keeps(
            AlgorithmRule,
            "ed25519-by-policy",
            "alg -19, where the policy says so",
            plain().signer(fully()),
        )
        .under(json!({ "allow_ed25519_algorithm": true })),
        breaks(
            AlgorithmRule,
            "ed25519",
            "alg -19, where the policy does not say so",
            plain().signer(fully()),
        ),
        breaks(AlgorithmRule, "es384", "another curve", plain().signer(es384())),
    ]
}

fn chain() -> Vec<Case> {
    use VrfRule::{ChainLabels, ChainPosition, Genesis, PrevReceiptHash};
    let first = "sha256:21e9e561d4cfe5e7c073f557680f347c7217894a5c2a97c8a855bbe62615d2db";
    let linked = |hash: &str| plain().at(1).label(-70004, hash);
    vec![
        keeps(PrevReceiptHash, "entry-id", "the predecessor by its entry ID", linked(first)),
        breaks(PrevReceiptHash, "empty", "an empty string is neither a hash nor null", linked("")),
        breaks(
            PrevReceiptHash,
            "zeros",
            "zeros stand for null elsewhere, not here",
            linked(&format!("sha256:{}", "0".repeat(64))),
        ),
        breaks(
            PrevReceiptHash,
            "upper-case",
            "hex digits are lower case",
            linked(&first.to_uppercase().replace("SHA256", "sha256")),
        ),
        breaks(PrevReceiptHash, "bare-hex", "the algorithm is missing", linked(&first[7..])),
        breaks(
            PrevReceiptHash,
            "sha512",
            "entry IDs are SHA-256",
            linked(&format!("sha512:{}", "a".repeat(128))),
        ),
        breaks(
            PrevReceiptHash,
            "bytes",
            "text, not bytes",
            plain().at(1).raw_label(-70004, Cbor::from(vec![0x21; 32])),
        ),
        keeps(Genesis, "null", "the first receipt has null for a predecessor", plain()),
        keeps(Genesis, "label-absent", "or no label at all", plain().without(-70004)),
        breaks(
            Genesis,
            "first-with-predecessor",
            "position 0 names a predecessor",
            plain().label(-70004, first),
        ),
        breaks(Genesis, "null-later", "position 1 has null for a predecessor", plain().at(1)),
        breaks(Genesis, "absent-later", "position 1 names no predecessor", plain().at(1).without(-70004)),
        keeps(ChainPosition, "later", "a position is an unsigned integer", linked(first).at(42)),
        breaks(
            ChainPosition,
            "negative",
            "positions count from 0",
            plain().raw_label(-70005, Cbor::Negative(0)),
        ),
        breaks(ChainPosition, "text", "a number, not its digits", plain().label(-70005, "0")),
        keeps(
            ChainLabels,
            "unchained",
            "a receipt outside any chain has neither label",
            plain().without(-70004).without(-70005),
        ),
        breaks(
            ChainLabels,
            "null-without-position",
            "null says that this is the first of a chain, so it has a position",
            plain().without(-70005),
        ),
        breaks(
            ChainLabels,
            "hash-without-position",
            "a predecessor, but no position",
            plain().label(-70004, first).without(-70005),
        ),
    ]
}

fn identity() -> Vec<Case> {
    use VrfRule::{ReceiptId, ReceiptIdAgrees, ReceiptIdUnique, Subject, SubjectAgrees};
    let id = |id: &str| set("receipt_id", json!(id));
    let again = || set("tier", json!(1));
    vec![
        keeps(
            Subject,
            "urn",
            "an agent may be a URN",
            plain().sub("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ),
        breaks(Subject, "bare-name", "a name that means something here only", plain().sub("agent-7")),
        breaks(Subject, "url", "neither DID nor URN", plain().sub("https://agent.example")),
        keeps(SubjectAgrees, "same", "the payload may repeat sub", set("subject", json!(testkit::AGENT))),
        breaks(
            SubjectAgrees,
            "another-agent",
            "the payload speaks of another agent's work",
            set("subject", json!("did:web:other.example")),
        ),
        keeps(
            ReceiptId,
            "uuid-v4",
            "a random UUID in lower case",
            id("550e8400-e29b-41d4-a716-446655440000"),
        ),
        breaks(
            ReceiptId,
            "upper-case",
            "one receipt, one spelling",
            id("550E8400-E29B-41D4-A716-446655440000"),
        ),
        breaks(ReceiptId, "uuid-v1", "a UUID of another version", id("550e8400-e29b-11d4-a716-446655440000")),
        breaks(
            ReceiptId,
            "wrong-variant",
            "version 4 of another variant",
            id("550e8400-e29b-41d4-c716-446655440000"),
        ),
        breaks(
            ReceiptId,
            "urn",
            "the UUID, not its URN",
            id("urn:uuid:550e8400-e29b-41d4-a716-446655440000"),
        ),
        breaks(ReceiptId, "no-hyphens", "the UUID in one piece", id("550e8400e29b41d4a716446655440000")),
        keeps(ReceiptIdAgrees, "same", "-70003 repeats receipt_id", plain()),
        breaks(
            ReceiptIdAgrees,
            "another-receipt",
            "-70003 claims another receipt",
            plain().label(-70003, "550e8400-e29b-41d4-a716-446655440000"),
        ),
        keeps(
            ReceiptIdUnique,
            "another-issuer",
            "another issuer may use the same receipt_id",
            plain().signer(ed25519([7; 32])),
        )
        .after(plain()),
        breaks(
            ReceiptIdUnique,
            "used-again",
            "the issuer says something else under the same receipt_id",
            again(),
        )
        .after(plain()),
    ]
}

fn tiers() -> Vec<Case> {
    use VrfRule::{MinimumTier, NonStructural, Structural, TierStructural};
    let opinion = |tier: Value| {
        Draft::changed(|receipt| {
            receipt["metadata"]["structural"] = json!(false);
            match tier {
                Value::Null => drop(receipt.as_object_mut().unwrap().remove("tier")),
                tier => receipt["tier"] = tier,
            }
        })
    };
    let allowed = json!({ "allow_non_structural": true });
    vec![
        keeps(Structural, "true", "metadata.structural is a boolean", plain()),
        breaks(
            Structural,
            "absent",
            "section 6.2 wants metadata.structural present",
            remove_from("metadata", "structural"),
        ),
        breaks(
            Structural,
            "text",
            "the word true is no boolean",
            set_in("metadata", "structural", json!("true")),
        ),
        keeps(TierStructural, "tier-3", "the highest tier", set("tier", json!(3))),
        breaks(TierStructural, "tier-4", "there is no tier 4", set("tier", json!(4))),
        breaks(
            TierStructural,
            "tier-negative",
            "a structural receipt has no negative tier",
            set("tier", json!(-1)),
        ),
        breaks(TierStructural, "tier-absent", "a structural receipt has a tier", remove("tier")),
        breaks(
            TierStructural,
            "opinion-with-tier",
            "a language model's opinion claims tier 0",
            opinion(json!(0)),
        )
        .under(allowed.clone()),
        keeps(
            NonStructural,
            "by-policy",
            "an opinion, where the policy says so; unknown to the tiers",
            opinion(Value::Null),
        )
        .under(allowed.clone()),
        keeps(NonStructural, "negative-tier-by-policy", "the same with a negative tier", opinion(json!(-1)))
            .under(allowed),
        breaks(
            NonStructural,
            "without-tier",
            "an opinion, where the policy does not say so",
            opinion(Value::Null),
        ),
        breaks(NonStructural, "negative-tier", "the same with a negative tier", opinion(json!(-1))),
        keeps(MinimumTier, "high-enough", "tier 2, where the policy asks for 2", set("tier", json!(2)))
            .under(json!({ "min_tier": 2 })),
        breaks(MinimumTier, "too-low", "tier 1, where the policy asks for 2", set("tier", json!(1)))
            .under(json!({ "min_tier": 2 })),
    ]
}

fn results(total: i64, passed: i64, failed: i64, errors: i64, verdict: &str) -> Draft {
    Draft::changed(|receipt| {
        receipt["results"] = json!({ "total": total, "passed": passed, "failed": failed, "errors": errors });
        receipt["verdict"] = json!(verdict);
    })
}

fn with_details(statuses: &[&str]) -> Draft {
    let details: Vec<Value> =
        statuses.iter().map(|status| json!({ "name": "t", "status": status })).collect();
    Draft::changed(|receipt| {
        receipt["results"] = json!({ "total": 3, "passed": 1, "failed": 0, "errors": 0, "details": details });
    })
}

fn counters() -> Vec<Case> {
    use VrfRule::{Counts, DetailStatus, Details, Totals};
    vec![
        keeps(Counts, "zero", "a count may be zero", results(0, 0, 0, 0, "error")),
        breaks(Counts, "negative", "nothing is counted below zero", set_in("results", "failed", json!(-1))),
        breaks(Counts, "absent", "all four counters are required", remove_from("results", "errors")),
        breaks(Counts, "text", "a number, not its digits", set_in("results", "total", json!("1"))),
        keeps(
            Totals,
            "some-skipped",
            "what neither passed, failed nor errored was skipped",
            results(5, 3, 0, 0, "pass"),
        ),
        breaks(Totals, "more-than-all", "more checks ended than there were", results(1, 1, 1, 0, "fail")),
        keeps(Details, "all-told", "one passed, two were skipped", with_details(&["pass", "skip", "skip"])),
        keeps(Details, "some-told", "details need not be complete", with_details(&["skip"])),
        breaks(
            Details,
            "hidden-failure",
            "a failure among the details that the counters deny",
            with_details(&["pass", "fail"]),
        ),
        breaks(
            Details,
            "too-many-passed",
            "more passed than the counter says",
            with_details(&["pass", "pass"]),
        ),
        keeps(DetailStatus, "skip", "skip is a status", with_details(&["skip"])),
        breaks(DetailStatus, "unknown", "ok is not a status", with_details(&["ok"])),
    ]
}

fn verdicts() -> Vec<Case> {
    use VrfRule::{Verdict, VerdictMeaning};
    vec![
        keeps(Verdict, "partial", "one of the four words", results(2, 1, 1, 0, "partial")),
        breaks(Verdict, "unknown-word", "not one of the four words", set("verdict", json!("passed"))),
        breaks(Verdict, "upper-case", "the words are lower case", set("verdict", json!("PASS"))),
        keeps(VerdictMeaning, "fail", "a check failed", results(2, 1, 1, 0, "fail")),
        keeps(VerdictMeaning, "error", "a check could not be run", results(2, 1, 0, 1, "error")),
        breaks(
            VerdictMeaning,
            "pass-despite-failure",
            "a check failed, the verdict says pass",
            results(2, 1, 1, 0, "pass"),
        ),
        breaks(
            VerdictMeaning,
            "pass-despite-error",
            "a check could not be run, the verdict says pass",
            results(2, 1, 0, 1, "pass"),
        ),
        breaks(
            VerdictMeaning,
            "pass-of-nothing",
            "nothing passed, the verdict says pass",
            results(1, 0, 0, 0, "pass"),
        ),
        breaks(VerdictMeaning, "fail-without-failure", "no check failed", results(1, 1, 0, 0, "fail")),
        breaks(VerdictMeaning, "partial-without-pass", "none passed", results(1, 0, 1, 0, "partial")),
        breaks(VerdictMeaning, "error-without-error", "no check errored", results(1, 1, 0, 0, "error")),
    ]
}

fn formats() -> Vec<Case> {
    use VrfRule::{Hash, Member, OpenString, OutputHash, UtcOffset, VerifiedAt, VerifiedAtFuture};
    let hash = |hash: String| set_in("hashes", "output", json!(hash));
    let time = |time: &str| set("verified_at", json!(time));
    let offset = || time("2026-01-01T00:00:00+00:00");
    let task = |length: usize| set("task", json!({ "task_type": "é".repeat(length) }));
    vec![
        keeps(OutputHash, "alone", "the output's hash is the only one required", plain()),
        breaks(
            OutputHash,
            "absent",
            "a receipt that does not say what was verified",
            remove_from("hashes", "output"),
        ),
        keeps(Hash, "sha384", "96 digits", hash(format!("sha384:{}", "a".repeat(96)))),
        keeps(Hash, "sha512", "128 digits", hash(format!("sha512:{}", "a".repeat(128)))),
        breaks(Hash, "upper-case", "digits are lower case", hash(format!("sha256:{}", "A".repeat(64)))),
        breaks(
            Hash,
            "too-short",
            "a digest cut short, as in the draft's own example",
            hash("sha256:e3b0c44298fc1c149afbf4c8".to_owned()),
        ),
        breaks(Hash, "md5", "an algorithm that proves nothing", hash(format!("md5:{}", "a".repeat(32)))),
        breaks(Hash, "bare-hex", "the algorithm is missing", hash("a".repeat(64))),
        breaks(
            Hash,
            "extension",
            "other hashes use the format too",
            set_in("hashes", "proof", json!("blake3:00")),
        ),
        keeps(VerifiedAt, "fraction", "a fraction of a second", time("2026-01-01T00:00:00.123456789Z")),
        breaks(VerifiedAt, "no-zone", "a time without a zone", time("2026-01-01T00:00:00")),
        breaks(VerifiedAt, "another-zone", "not UTC", time("2026-01-01T01:00:00+01:00")),
        breaks(VerifiedAt, "no-such-day", "2026 has no 29 February", time("2026-02-29T00:00:00Z")),
        breaks(VerifiedAt, "leap-second", "second 60 has no Unix time", time("2016-12-31T23:59:60Z")),
        breaks(VerifiedAt, "lower-case", "t and z are upper case", time("2026-01-01t00:00:00z")),
        keeps(UtcOffset, "by-policy", "+00:00, where the policy says so", offset())
            .under(json!({ "allow_numeric_offset": true })),
        breaks(UtcOffset, "numeric", "+00:00, where the policy does not say so", offset()),
        keeps(VerifiedAtFuture, "five-minutes-ahead", "clocks differ", plain()).at(1_767_225_600 - 300),
        breaks(
            VerifiedAtFuture,
            "further-ahead",
            "the log's time is 301 seconds before verified_at",
            plain(),
        )
        .at(1_767_225_600 - 301),
        keeps(OpenString, "64-characters", "an unlisted task_type of 64 characters", task(64)),
        breaks(OpenString, "65-characters", "longer than any category needs", task(65)),
        breaks(
            OpenString,
            "sandbox",
            "sandbox has the same bound",
            set_in("metadata", "sandbox", json!("x".repeat(65))),
        ),
        keeps(
            Member,
            "unknown-members",
            "what the tables do not list is kept (reading 19)",
            set_in("results", "coverage", json!({ "lines": 91 })),
        ),
        breaks(Member, "no-metadata", "metadata holds required members", remove("metadata")),
        breaks(Member, "no-verifier", "metadata.verifier is required", remove_from("metadata", "verifier")),
        breaks(
            Member,
            "execution-as-text",
            "execution_ms is an integer",
            set_in("metadata", "execution_ms", json!("150")),
        ),
        breaks(Member, "array", "a receipt is an object", Draft::of_json(b"[]")),
        breaks(
            Member,
            "detail-without-name",
            "a detail has a name",
            set_in("results", "details", json!([{ "status": "pass" }])),
        ),
    ]
}

fn versions() -> Vec<Case> {
    use VrfRule::{Version, VersionAgrees};
    vec![
        keeps(Version, "one-point-zero", "the one version", plain()),
        breaks(
            Version,
            "newer",
            "a version we cannot know",
            set("vrf_version", json!("1.1")).label(-70001, "1.1"),
        ),
        keeps(VersionAgrees, "same", "-70001 repeats vrf_version", plain()),
        breaks(VersionAgrees, "another", "-70001 claims another version", plain().label(-70001, "2.0")),
    ]
}
