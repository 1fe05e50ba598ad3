//! The cases of `vectors/bundle`: the bundle of a session, and what is done to it.

use bundle::EvidenceBundle;
use verifier::TrustStore;

use crate::log::{TestLog, trust, witness_policy};

/// A bundle, a reader and the answer.
pub struct Case {
    pub name: &'static str,
    pub why: &'static str,
    /// `verified`, `failed`, `not-verified` or `malformed`.
    pub outcome: &'static str,
    /// The code of the reason; none if verified or malformed.
    pub reason: Option<&'static str>,
    pub bundle: String,
    pub trust: TrustStore,
    pub witness_policy: Option<String>,
}

/// A change to a sound bundle.
type Change<B> = fn(&TestLog, &mut B);
/// A change of a bundle, or of its reader's trust.
type ChangeOfBoth = Change<(EvidenceBundle, TrustStore)>;

/// Changes of the contents that leave a bundle verified.
const HARMLESS: &[(&str, &str, Change<EvidenceBundle>)] = &[
    ("session", "every entry, the policy and the checkpoint verify", |_, _| {}),
    ("without-selection", "entries that were named one by one", |_, bundle| bundle.selections.clear()),
    ("one-entry", "an entry of another issuer is not needed", |_, bundle| {
        bundle.selections.clear();
        bundle.entries.truncate(1);
    }),
    ("claims-changed", "claims are unsigned, and no verification uses them", |_, bundle| {
        bundle.claims.trust.clear();
        bundle.claims.log_url = "https://elsewhere.example/".to_owned();
        bundle.claims.witness_policy = None;
    }),
    ("one-witness-more", "a third cosignature", |log, bundle| bundle.checkpoint = log.checkpoint(&[1, 2, 3])),
];

/// Changes of the contents, each with the code of the failure.
const TAMPERED: &[(&str, &str, &str, Change<EvidenceBundle>)] = &[
    (
        "statement-changed",
        "issuer-signature-invalid",
        "one bit of the signature of a statement",
        |_, bundle| {
            *bundle.entries[0].statement.last_mut().unwrap() ^= 1;
        },
    ),
    ("statement-is-none", "malformed-statement", "the statement is cut off", |_, bundle| {
        bundle.entries[0].statement.truncate(20);
    }),
    ("statements-swapped", "tlog-proof-mismatch", "two statements have changed places", |_, bundle| {
        let first = std::mem::take(&mut bundle.entries[0].statement);
        bundle.entries[0].statement = std::mem::replace(&mut bundle.entries[1].statement, first);
    }),
    ("receipt-changed", "receipt-root-mismatch", "one bit of the signature of a receipt", |_, bundle| {
        *bundle.entries[1].receipt.last_mut().unwrap() ^= 1;
    }),
    ("receipt-dropped", "malformed-receipt", "an empty receipt", |_, bundle| {
        bundle.entries[1].receipt.clear()
    }),
    ("receipts-swapped", "receipt-root-mismatch", "two receipts have changed places", |_, bundle| {
        let first = std::mem::take(&mut bundle.entries[0].receipt);
        bundle.entries[0].receipt = std::mem::replace(&mut bundle.entries[1].receipt, first);
    }),
    ("payload-changed", "issuer-signature-invalid", "another detached payload", |_, bundle| {
        bundle.entries[2].payload = Some(br#"{"report":"no page"}"#.to_vec());
    }),
    ("path-changed", "tlog-proof-mismatch", "one hash of a proof", |_, bundle| {
        bundle.entries[0].proof.path[0] = bundle.entries[0].proof.path[1];
    }),
    ("path-cut", "receipt-proof-invalid", "a proof lacks its last hash", |_, bundle| {
        bundle.entries[0].proof.path.pop();
    }),
    ("paths-swapped", "tlog-proof-mismatch", "two proofs have changed places", |_, bundle| {
        let first = std::mem::take(&mut bundle.entries[0].proof.path);
        bundle.entries[0].proof.path = std::mem::replace(&mut bundle.entries[1].proof.path, first);
    }),
    ("index-changed", "tlog-proof-mismatch", "a proof claims another leaf", |_, bundle| {
        bundle.selections.clear();
        bundle.entries.truncate(1);
        bundle.entries[0].proof.index = 3;
    }),
    (
        "checkpoint-changed",
        "checkpoint-signature-invalid",
        "another size above the old signature",
        |_, bundle| {
            bundle.checkpoint = bundle.checkpoint.replacen("\n5\n", "\n6\n", 1);
        },
    ),
    ("checkpoint-older", "receipt-proof-invalid", "a signed checkpoint of a smaller tree", |log, bundle| {
        bundle.checkpoint = log.older_checkpoint();
    }),
    ("checkpoint-dropped", "malformed-tlog-proof", "an empty checkpoint", |_, bundle| {
        bundle.checkpoint.clear()
    }),
    ("cosignature-dropped", "quorum-not-met", "one cosignature less than the quorum", |log, bundle| {
        bundle.checkpoint = log.checkpoint(&[1]);
    }),
    ("entry-dropped", "entry-missing", "an entry was taken out that the index had named", |_, bundle| {
        bundle.entries.remove(1);
    }),
    ("policy-dropped", "policy-missing", "the policy was taken out", |_, bundle| bundle.policies.clear()),
    ("policy-replaced", "policy-missing", "another entry in the place of the policy", |log, bundle| {
        bundle.policies = vec![log.entry(1)];
        bundle.policies[0].admitted_by = None;
        bundle.entries.iter_mut().for_each(|entry| entry.admitted_by.as_mut().unwrap().policy = 1);
    }),
    ("policy-changed", "tlog-proof-mismatch", "one bit of the signature of the policy", |_, bundle| {
        *bundle.policies[0].statement.last_mut().unwrap() ^= 1;
    }),
    (
        "policy-later",
        "policy-too-late",
        "an entry names a policy that was registered after it",
        |log, bundle| {
            bundle.policies.push(bundle::BundleEntry { admitted_by: None, ..log.entry(4) });
            bundle.entries[0].admitted_by.as_mut().unwrap().policy = 4;
        },
    ),
    ("admission-dropped", "policy-missing", "an entry names no policy", |_, bundle| {
        bundle.entries[0].admitted_by = None;
    }),
];

/// Changes of the reader or the contents after which something cannot be verified.
const OPEN: &[(&str, &str, &str, ChangeOfBoth)] = &[
    ("nobody-trusted", "no-trust-anchors", "the keys in the bundle are never trusted", |_, (_, trust)| {
        *trust = TrustStore::default();
    }),
    ("issuer-unknown", "unknown-issuer", "the reader knows no key of the issuer", |_, (_, trust)| {
        trust.issuers.clear();
    }),
    ("log-unknown", "unknown-log", "the reader trusts another log", |_, (_, trust)| {
        trust.logs[0].iss = Some("https://other.example".to_owned());
    }),
    (
        "checkpoint-key-unknown",
        "unknown-checkpoint-key",
        "the reader has receipt keys only",
        |_, (_, trust)| {
            trust.logs[0].checkpoint_keys.clear();
        },
    ),
    ("payload-dropped", "payload-missing", "the detached payload was taken out", |_, (bundle, _)| {
        bundle.entries[2].payload = None;
    }),
    ("empty", "empty-bundle", "there is no entry", |_, (bundle, _)| {
        bundle.selections.clear();
        bundle.entries.clear();
        bundle.policies.clear();
    }),
];

/// Changes of the text of a bundle that make it malformed.
const MALFORMED: &[(&str, &str, Change<String>)] = &[
    ("cut-off", "the file ends too early", |_, text| text.truncate(text.len() / 2)),
    ("trailing", "something follows the document", |_, text| text.push_str("{}")),
    ("line-end", "a line end after the document, so that it is not in canonical form", |_, text| {
        text.push('\n')
    }),
    ("spaces", "spaces between the members", |_, text| *text = text.replacen("\":", "\": ", 1)),
    ("version-2", "another version", |_, text| *text = text.replacen("\"bundle\":1", "\"bundle\":2", 1)),
    ("duplicate-member", "a member occurs twice", |_, text| {
        *text = text.replacen("{\"bundle\":1", "{\"bundle\":1,\"bundle\":1", 1);
    }),
    ("unknown-member", "a member of no meaning", |_, text| {
        *text = text.replacen("\"checkpoint\":", "\"chart\":1,\"checkpoint\":", 1);
    }),
    ("missing-member", "there is no list of policies", |_, text| {
        *text = text.replacen("\"policies\":", "\"policiez\":", 1);
    }),
    ("null", "null in place of a payload", |_, text| {
        *text = text.replacen("\"proof\":", "\"payload\":null,\"proof\":", 1);
    }),
    ("padded", "base64url with padding", |_, text| {
        *text = text.replacen("\"receipt\":\"", "\"receipt\":\"AA==", 1);
    }),
    ("upper-case-hash", "a hash in upper case", |log, text| {
        let digest = log.digest(2).to_string();
        *text = text.replacen(&digest, &digest.to_uppercase(), 1);
    }),
    ("index-too-large", "a leaf index that a double does not hold", |_, text| {
        *text = text.replacen("\"index\":2", "\"index\":9007199254740993", 1);
    }),
    ("unordered", "entries are not in the order of the log", |_, text| {
        *text = text.replacen("\"index\":2", "\"index\":3", 1);
    }),
    ("path-too-long", "a proof of 65 hashes", |log, text| {
        let hashes = vec![format!("\"{}\"", log.digest(2)); 65].join(",");
        let begin = text.find("\"path\":[").unwrap() + 8;
        let end = begin + text[begin..].find(']').unwrap();
        text.replace_range(begin..end, &hashes);
    }),
];

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let log = TestLog::new();
    let mut cases = Vec::new();
    for (name, why, change) in HARMLESS {
        let mut bundle = log.bundle();
        change(&log, &mut bundle);
        cases.push(case(name, why, "verified", None, &bundle, trust()));
    }
    for (name, reason, why, change) in TAMPERED {
        let mut bundle = log.bundle();
        change(&log, &mut bundle);
        cases.push(case(name, why, "failed", Some(reason), &bundle, trust()));
    }
    for (name, reason, why, change) in OPEN {
        let mut changed = (log.bundle(), trust());
        change(&log, &mut changed);
        cases.push(case(name, why, "not-verified", Some(reason), &changed.0, changed.1));
    }
    for (name, why, change) in MALFORMED {
        let mut text = text(&log.bundle());
        change(&log, &mut text);
        cases.push(Case { bundle: text, ..case(name, why, "malformed", None, &log.bundle(), trust()) });
    }
    cases
}

fn case(
    name: &'static str,
    why: &'static str,
    outcome: &'static str,
    reason: Option<&'static str>,
    bundle: &EvidenceBundle,
    trust: TrustStore,
) -> Case {
    Case { name, why, outcome, reason, bundle: text(bundle), trust, witness_policy: Some(witness_policy()) }
}

fn text(bundle: &EvidenceBundle) -> String {
    String::from_utf8(bundle.to_bytes()).unwrap()
}
