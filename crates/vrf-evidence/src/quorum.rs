//! N of M verifiers (section 8.1): enough verifiers of a list have passed the same work.
//!
//! The same work is one output, one agent and one task. The output is the same if its hash is; with the artifact at hand,
//! if the hash is one of the artifact's. A log cannot see that an agent presents another one's receipt as its own
//! (section 8.4); a relying party compares what the verifiers agree on with what it received.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use registration::vrf::Verdict;
use serde::Serialize;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::evidence::VrfEvidence;
use crate::limits::QUORUM_VERIFIERS;

/// The verifiers that a relying party accepts, and how many of them must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierQuorum {
    needed: usize,
    verifiers: Vec<String>,
    /// The earliest time of a verification that counts, in Unix seconds.
    earliest: Option<i64>,
}

/// An error in the text of a [`VerifierQuorum`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumSyntaxError(String);

/// The work that verifiers agree on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SharedWork {
    /// The hash of the verified output (`hashes.output`); the SHA-256 of the artifact, if one is given.
    pub output: String,
    /// The agent (`sub`).
    pub agent: String,
    /// The task (`task.task_id`), if the receipts name one.
    pub task_id: Option<String>,
}

/// The result for a [`VerifierQuorum`].
#[derive(Clone, Debug, Serialize)]
pub struct QuorumReport {
    /// True if enough verifiers count.
    pub met: bool,
    /// The number of verifiers that must count.
    pub needed: usize,
    /// The number of verifiers that count.
    pub counted: usize,
    /// The work on which most verifiers agree; `None` if no listed verifier has a verified receipt.
    pub work: Option<SharedWork>,
    /// Each verifier of the list, in its order.
    pub verifiers: Vec<VerifierStanding>,
    /// Evidence of verifiers that are not on the list.
    pub unlisted: Vec<UnlistedEvidence>,
}

/// Whether a listed verifier counts, and why.
#[derive(Clone, Debug, Serialize)]
pub struct VerifierStanding {
    /// The verifier.
    pub verifier: String,
    /// True if it passed the work.
    pub counts: bool,
    /// The reason, in words. It may quote a statement: escape it before printing.
    pub reason: String,
    /// The entry that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// A receipt of a verifier that is not on the list.
#[derive(Clone, Debug, Serialize)]
pub struct UnlistedEvidence {
    /// The verifier.
    pub verifier: String,
    /// The entry of the receipt.
    pub entry: String,
}

impl FromStr for VerifierQuorum {
    type Err = QuorumSyntaxError;

    /// Parses `2-of did:key:a,did:key:b,did:key:c`.
    fn from_str(text: &str) -> Result<Self, QuorumSyntaxError> {
        let wrong = |why: String| Err(QuorumSyntaxError(why));
        let Some((needed, verifiers)) = text.trim().split_once("-of ") else {
            return wrong("give a number and the verifiers, as in \"2-of did:key:a,did:key:b\"".into());
        };
        let Ok(needed) = needed.parse::<usize>() else {
            return wrong(format!("{needed:?} is not a number of verifiers"));
        };
        let verifiers: Vec<String> = verifiers.split(',').map(|name| name.trim().to_owned()).collect();
        let distinct: BTreeSet<&String> = verifiers.iter().collect();
        if verifiers.iter().any(String::is_empty) {
            return wrong("a name in the list of verifiers is empty".into());
        }
        if distinct.len() < verifiers.len() {
            return wrong("a verifier is listed twice".into());
        }
        if verifiers.len() > QUORUM_VERIFIERS {
            return wrong(format!(
                "{} verifiers are listed, at most {QUORUM_VERIFIERS} may be",
                verifiers.len()
            ));
        }
        if !(1..=verifiers.len()).contains(&needed) {
            return wrong(format!("{needed} of {} verifiers cannot be required", verifiers.len()));
        }
        Ok(Self { needed, verifiers, earliest: None })
    }
}

impl fmt::Display for QuorumSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuorumSyntaxError {}

impl VerifierQuorum {
    /// Counts only verifications from this time on, in Unix seconds ([`VrfEvidence::dated_at`]).
    pub fn not_before(self, earliest: i64) -> Self {
        Self { earliest: Some(earliest), ..self }
    }

    /// Returns whether a verification is too old to count.
    fn is_too_old(&self, one: &VrfEvidence) -> bool {
        self.earliest.is_some_and(|earliest| one.dated_at().is_none_or(|dated| dated < earliest))
    }

    /// Decides with these statements. If `artifact` is given, the work is the output with its hash and no other.
    pub fn decide(&self, evidence: &[VrfEvidence], artifact: Option<&[u8]>) -> QuorumReport {
        let artifact = artifact.map(ArtifactHashes::of);
        let work = self.shared_work(evidence, artifact.as_ref());
        let verifiers: Vec<VerifierStanding> = self
            .verifiers
            .iter()
            .map(|verifier| self.standing(verifier, evidence, work.as_ref(), artifact.as_ref()))
            .collect();
        let counted = verifiers.iter().filter(|standing| standing.counts).count();
        let unlisted = evidence.iter().filter(|one| !self.verifiers.contains(&one.issuer));
        let unlisted = unlisted
            .map(|one| UnlistedEvidence { verifier: one.issuer.clone(), entry: one.entry.to_string() })
            .collect();
        QuorumReport { met: counted >= self.needed, needed: self.needed, counted, work, verifiers, unlisted }
    }

    /// The work that most listed verifiers passed; of several the first one of the statements.
    fn shared_work(&self, evidence: &[VrfEvidence], artifact: Option<&ArtifactHashes>) -> Option<SharedWork> {
        let mut passed_by: BTreeMap<SharedWork, BTreeSet<&str>> = BTreeMap::new();
        let mut order = Vec::new();
        for one in evidence.iter().filter(|one| self.verifiers.contains(&one.issuer) && one.is_verified()) {
            let Some(work) = SharedWork::of(one, artifact) else { continue };
            if !order.contains(&work) {
                order.push(work.clone());
            }
            let passed = passed_by.entry(work).or_default();
            let counts = !one.is_self_issued() && !self.is_too_old(one);
            if one.verdict() == Some(Verdict::Pass) && counts {
                passed.insert(&one.issuer);
            }
        }
        let most = passed_by.values().map(BTreeSet::len).max()?;
        order.into_iter().find(|work| passed_by[work].len() == most)
    }

    /// Decides on one verifier: each of its statements is judged, a contradiction counts against it, otherwise one verified
    /// pass is enough.
    fn standing(
        &self,
        verifier: &str,
        evidence: &[VrfEvidence],
        work: Option<&SharedWork>,
        artifact: Option<&ArtifactHashes>,
    ) -> VerifierStanding {
        let of_verifier: Vec<(&VrfEvidence, Result<(), Objection>)> = evidence
            .iter()
            .filter(|one| one.issuer == verifier)
            .map(|one| (one, self.objection(one, work, artifact).map_or(Ok(()), Err)))
            .collect();
        let verdict_against =
            of_verifier.iter().find(|(_, result)| matches!(result, Err(Objection::Verdict(_))));
        let pass = of_verifier.iter().find(|(_, result)| result.is_ok());
        let decides = verdict_against.or(pass).or(of_verifier.first());
        let (counts, reason) = match decides {
            None => (false, "none of the statements is by it".to_owned()),
            Some((_, Ok(()))) => (true, "a verified pass".to_owned()),
            Some((_, Err(objection))) => (false, objection.to_string()),
        };
        VerifierStanding {
            verifier: verifier.to_owned(),
            counts,
            reason,
            entry: decides.map(|(one, _)| one.entry.to_string()),
        }
    }

    fn objection(
        &self,
        one: &VrfEvidence,
        work: Option<&SharedWork>,
        artifact: Option<&ArtifactHashes>,
    ) -> Option<Objection> {
        if let Some(fault) = one.fault() {
            return Some(Objection::NotVerified(fault.to_string()));
        }
        let Some(receipt) = one.receipt() else { return Some(Objection::NotDisclosed) };
        if one.is_self_issued() {
            return Some(Objection::SelfIssued);
        }
        if self.is_too_old(one) {
            return Some(Objection::TooOld);
        }
        if work.is_none() || SharedWork::of(one, artifact).as_ref() != work {
            return Some(Objection::OtherWork { of_artifact: artifact.is_some() });
        }
        (receipt.verdict != Verdict::Pass).then_some(Objection::Verdict(receipt.verdict))
    }
}

impl SharedWork {
    /// The work of a receipt; `None` if the receipt is not disclosed, or its output is not the artifact.
    fn of(evidence: &VrfEvidence, artifact: Option<&ArtifactHashes>) -> Option<Self> {
        let receipt = evidence.receipt()?;
        let output = match artifact {
            None => receipt.output.clone(),
            Some(artifact) => artifact.name_of(&receipt.output)?,
        };
        Some(Self { output, agent: evidence.subject.clone(), task_id: receipt.task_id.clone() })
    }
}

/// The hashes by which receipts may name an artifact: those of its raw bytes (reading 16), SHA-256 first.
struct ArtifactHashes([String; 3]);

impl ArtifactHashes {
    fn of(artifact: &[u8]) -> Self {
        Self([
            format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(artifact))),
            format!("sha384:{}", HEXLOWER.encode(&Sha384::digest(artifact))),
            format!("sha512:{}", HEXLOWER.encode(&Sha512::digest(artifact))),
        ])
    }

    /// Returns the SHA-256 of the artifact if `output` is one of its hashes: verifiers that chose different algorithms
    /// judged the same work.
    fn name_of(&self, output: &str) -> Option<String> {
        let [sha256, ..] = &self.0;
        self.0.iter().any(|hash| hash == output).then(|| sha256.clone())
    }
}

/// A reason for which a statement does not count.
enum Objection {
    NotVerified(String),
    NotDisclosed,
    SelfIssued,
    TooOld,
    OtherWork { of_artifact: bool },
    Verdict(Verdict),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotVerified(why) => write!(f, "its statement is not verified: {why}"),
            Self::NotDisclosed => f.write_str("only the hash of its receipt is registered"),
            Self::SelfIssued => f.write_str("it verified its own work"),
            Self::TooOld => f.write_str("its verification is too old"),
            Self::OtherWork { of_artifact: true } => {
                f.write_str("its receipt is not about this artifact and task")
            }
            Self::OtherWork { of_artifact: false } => {
                f.write_str("its receipt is about another output, agent or task")
            }
            Self::Verdict(verdict) => write!(f, "its verdict is {}", verdict.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use registration::vrf::VrfStatement;
    use scitt::{Signer, SigningKey};
    use serde_json::{Value, json};
    use testkit::{AGENT, NOW, ed25519, receipt_json};
    use verifier::{StatementEvidence, TrustStore, VerificationOutcome};

    use super::*;
    use crate::VrfVerifier;

    /// The output of [`receipt_json`].
    const ARTIFACT: &[u8] = b"abc";

    fn key(n: u8) -> SigningKey {
        ed25519([n; 32])
    }

    fn did(n: u8) -> String {
        key(n).public_key().did_key()
    }

    /// A receipt by the `n`th verifier that counts as registered.
    fn evidence(n: u8, sub: &str, json: Value) -> VrfEvidence {
        let statement = VrfStatement::new(json, sub).sign(&key(n)).expect("it keeps the rules");
        let given = StatementEvidence { statement: statement.bytes(), ..StatementEvidence::default() };
        let verified =
            VrfVerifier::new(&TrustStore::default()).verify(&given, NOW).expect("it keeps the rules");
        VrfEvidence { outcome: VerificationOutcome::Verified, ..verified }
    }

    fn pass(n: u8) -> VrfEvidence {
        evidence(n, AGENT, receipt_json(n.into()))
    }

    fn fail(n: u8) -> VrfEvidence {
        evidence(n, AGENT, fail_json(n))
    }

    fn fail_json(n: u8) -> Value {
        let mut json = receipt_json(n.into());
        json["verdict"] = "fail".into();
        json["results"] = json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
        json
    }

    fn two_of_three() -> VerifierQuorum {
        format!("2-of {},{},{}", did(1), did(2), did(3)).parse().expect("a quorum")
    }

    fn reason(report: &QuorumReport, n: usize) -> &str {
        &report.verifiers[n - 1].reason
    }

    #[test]
    fn two_of_three_verifiers_are_enough() {
        let report = two_of_three().decide(&[pass(1), pass(3)], None);
        assert_eq!((report.met, report.counted), (true, 2));
        assert_eq!(reason(&report, 2), "none of the statements is by it");
        assert_eq!(report.work.expect("what they agree on").agent, AGENT);
    }

    #[test]
    fn a_verifier_counts_once_and_a_stranger_never() {
        let report = two_of_three().decide(&[pass(1), pass(1), pass(4)], None);
        assert_eq!((report.met, report.counted), (false, 1));
        assert_eq!(report.unlisted[0].verifier, did(4));
    }

    #[test]
    fn a_verifier_counts_for_a_verified_pass_about_the_same_work_only() {
        let mut task = receipt_json(3);
        task["task"] = json!({ "task_id": "job-7" });
        let others = [
            (fail(3), "its verdict is fail"),
            (
                evidence(3, "did:web:other.example", receipt_json(3)),
                "its receipt is about another output, agent or task",
            ),
            (evidence(3, AGENT, task), "its receipt is about another output, agent or task"),
            (evidence(3, &did(3), receipt_json(3)), "it verified its own work"),
        ];
        for (other, why) in others {
            let report = two_of_three().decide(&[pass(1), other], None);
            assert_eq!((report.met, reason(&report, 3)), (false, why));
        }
        let unverified = VrfEvidence { outcome: VerificationOutcome::NotVerified, ..pass(3) };
        let report = two_of_three().decide(&[pass(1), unverified], None);
        assert!(reason(&report, 3).starts_with("its statement is not verified"), "{}", reason(&report, 3));
    }

    #[test]
    fn a_verifier_that_contradicts_itself_does_not_count() {
        let report = two_of_three().decide(&[pass(1), pass(3), fail(3)], None);
        assert_eq!((report.met, reason(&report, 3)), (false, "its verdict is fail"));
    }

    #[test]
    fn with_an_artifact_only_receipts_about_its_hash_count() {
        let both = [pass(1), pass(2)];
        assert!(two_of_three().decide(&both, Some(ARTIFACT)).met);
        let report = two_of_three().decide(&both, Some(b"abd"));
        assert_eq!((report.met, report.work.is_none()), (false, true));
        assert_eq!(reason(&report, 1), "its receipt is not about this artifact and task");
    }

    /// The same evidence about the SHA-512 of [`ARTIFACT`].
    fn with_sha512(n: u8, mut json: Value) -> VrfEvidence {
        json["hashes"]["output"] = format!("sha512:{}", HEXLOWER.encode(&Sha512::digest(ARTIFACT))).into();
        evidence(n, AGENT, json)
    }

    #[test]
    fn a_verifier_that_contradicts_itself_by_another_hash_of_the_artifact_does_not_count() {
        let one: VerifierQuorum = format!("1-of {}", did(1)).parse().expect("a quorum");
        let both = [pass(1), with_sha512(1, fail_json(1))];
        let report = one.decide(&both, Some(ARTIFACT));
        assert_eq!((report.met, reason(&report, 1)), (false, "its verdict is fail"));
    }

    #[test]
    fn verifiers_that_name_the_artifact_by_different_hashes_passed_the_same_work() {
        let both = [with_sha512(1, receipt_json(1)), pass(2)];
        let report = two_of_three().decide(&both, Some(ARTIFACT));
        assert_eq!((report.met, report.counted), (true, 2));
        assert!(report.work.expect("the artifact").output.starts_with("sha256:"));
        let report = two_of_three().decide(&both, None);
        assert!(!report.met, "without the artifact the hashes do not say that they are of the same output");
    }

    #[test]
    fn verifications_before_the_earliest_time_do_not_count() {
        let dated = pass(1).dated_at().expect("it is disclosed");
        let both = [pass(1), pass(2)];
        assert!(two_of_three().not_before(dated).decide(&both, None).met);
        let report = two_of_three().not_before(dated + 1).decide(&both, None);
        assert_eq!((report.met, reason(&report, 1)), (false, "its verification is too old"));
    }

    #[test]
    fn a_quorum_is_a_number_of_distinct_verifiers() {
        for wrong in ["", "2", "2-of", "x-of a,b", "0-of a,b", "3-of a,b", "1-of a,,b", "1-of a,a"] {
            assert!(wrong.parse::<VerifierQuorum>().is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..=QUORUM_VERIFIERS).map(|n| n.to_string()).collect();
        assert!(format!("1-of {}", many.join(",")).parse::<VerifierQuorum>().is_err());
    }
}
