//! The receipt: tiers, counters, verdicts, formats (readings 13 to 20).

use registration::vrf::VrfRule;
use serde_json::{Value, json};

use super::{breaks, keeps, plain, remove, remove_from, set, set_in};
use crate::Case;
use crate::draft::Draft;

pub fn tiers() -> Vec<Case> {
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

pub fn counters() -> Vec<Case> {
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

pub fn verdicts() -> Vec<Case> {
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

pub fn formats() -> Vec<Case> {
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

pub fn versions() -> Vec<Case> {
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
