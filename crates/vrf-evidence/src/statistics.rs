//! Statistics of an agent's verification receipts, computed from verified statements (section 6.3, step 5).
//!
//! Unlike the summary of a transparency service, they need no trust in the service's words and hide no small groups.
//! Receipts that the agent issued about itself prove nothing about its work and are counted apart. Whether statements
//! were left out is not visible here: an audit reads every entry.

use std::collections::BTreeMap;

use registration::vrf::{Receipt, Verdict};
use serde::Serialize;

use crate::evidence::{EvidenceFault, VrfEvidence};
use crate::limits::{GROUPS, NAMED_UNVERIFIED};

/// The statistics of one agent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgentStatistics {
    /// Verified receipts of other verifiers, by verdict.
    #[serde(flatten)]
    pub counts: VerdictCounts,
    /// The same by tier; `none` for receipts without one.
    pub by_tier: BTreeMap<String, VerdictCounts>,
    /// The same by type of task; `none` for receipts without one.
    pub by_task_type: BTreeMap<String, VerdictCounts>,
    /// The same by verifier.
    pub by_issuer: BTreeMap<String, VerdictCounts>,
    /// True if values above [`GROUPS`] were left out of a breakdown.
    pub truncated: bool,
    /// Verified receipts that the agent issued about itself. They are in no other count.
    pub self_issued: SelfIssued,
    /// Verified statements that contain only the hash of their receipt.
    pub redacted: u64,
    /// The number of statements that are not verified. They are in no other count.
    pub unverified: u64,
    /// The first of them, at most [`NAMED_UNVERIFIED`].
    pub unverified_entries: Vec<UnverifiedEntry>,
}

/// Numbers of receipts by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// All receipts.
    pub receipts: u64,
    /// Receipts with the verdict `pass`.
    pub pass: u64,
    /// Receipts with the verdict `fail`.
    pub fail: u64,
    /// Receipts with the verdict `partial`.
    pub partial: u64,
    /// Receipts with the verdict `error`.
    pub error: u64,
}

/// Receipts that an agent issued about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfIssued {
    /// All of them.
    pub receipts: u64,
    /// Those with the verdict `pass`.
    pub pass: u64,
}

/// A statement that is not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnverifiedEntry {
    /// The entry ID.
    pub entry: String,
    /// The broken rule, or the code of the check that failed or was not done.
    pub code: String,
    /// The compared values. They may quote the statement: escape them before printing.
    pub detail: String,
}

impl AgentStatistics {
    /// Counts a statement.
    pub fn add(&mut self, evidence: &VrfEvidence) {
        if let Some(fault) = evidence.fault() {
            return self.add_unverified(evidence.entry.to_string(), fault);
        }
        let Some(receipt) = evidence.receipt() else {
            self.redacted += 1;
            return;
        };
        if evidence.is_self_issued() {
            self.self_issued.receipts += 1;
            self.self_issued.pass += u64::from(receipt.verdict == Verdict::Pass);
            return;
        }
        self.add_verified(&evidence.issuer, receipt);
    }

    /// Counts a statement that could not be verified.
    pub fn add_unverified(&mut self, entry: String, fault: EvidenceFault) {
        self.unverified += 1;
        if self.unverified_entries.len() < NAMED_UNVERIFIED {
            let EvidenceFault { code, detail } = fault;
            self.unverified_entries.push(UnverifiedEntry { entry, code, detail });
        }
    }

    /// The share of receipts of other verifiers with the verdict `pass`, to three digits; `None` without any.
    pub fn pass_rate(&self) -> Option<f64> {
        let VerdictCounts { receipts, pass, .. } = self.counts;
        (receipts > 0).then(|| (pass as f64 / receipts as f64 * 1000.0).round() / 1000.0)
    }

    fn add_verified(&mut self, issuer: &str, receipt: &Receipt) {
        let none = || "none".to_owned();
        let verdict = receipt.verdict;
        self.counts.add(verdict);
        let tier = receipt.tier.map_or_else(none, |tier| tier.to_string());
        let task_type = receipt.task_type.clone().unwrap_or_else(none);
        let mut whole = true;
        whole &= count(&mut self.by_tier, tier, verdict);
        whole &= count(&mut self.by_task_type, task_type, verdict);
        whole &= count(&mut self.by_issuer, issuer.to_owned(), verdict);
        self.truncated |= !whole;
    }
}

impl VerdictCounts {
    fn add(&mut self, verdict: Verdict) {
        self.receipts += 1;
        match verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Fail => self.fail += 1,
            Verdict::Partial => self.partial += 1,
            Verdict::Error => self.error += 1,
        }
    }
}

/// Counts a receipt in its group. Returns `false` if the group would be one too many.
fn count(groups: &mut BTreeMap<String, VerdictCounts>, value: String, verdict: Verdict) -> bool {
    if groups.len() >= GROUPS && !groups.contains_key(&value) {
        return false;
    }
    groups.entry(value).or_default().add(verdict);
    true
}

#[cfg(test)]
mod tests {
    use registration::vrf::VrfStatement;
    use scitt::Signer;
    use serde_json::json;
    use testkit::{AGENT, NOW, receipt_json, verifier};
    use verifier::{StatementEvidence, TrustStore, VerificationOutcome};

    use super::*;
    use crate::VrfVerifier;

    fn evidence(statement: VrfStatement) -> VrfEvidence {
        let statement = statement.sign(&verifier()).expect("it keeps the rules");
        let given = StatementEvidence { statement: statement.bytes(), ..StatementEvidence::default() };
        let verified =
            VrfVerifier::new(&TrustStore::default()).verify(&given, NOW).expect("it keeps the rules");
        VrfEvidence { outcome: VerificationOutcome::Verified, ..verified }
    }

    #[test]
    fn verified_receipts_are_counted_by_verdict_tier_task_and_issuer() {
        let mut failed = receipt_json(2);
        failed["verdict"] = "fail".into();
        failed["results"] = json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
        failed["task"] = json!({ "task_type": "code_generation" });
        failed["tier"] = 2.into();
        let mut statistics = AgentStatistics::default();
        statistics.add(&evidence(VrfStatement::new(receipt_json(1), AGENT)));
        statistics.add(&evidence(VrfStatement::new(failed, AGENT)));
        let one = |pass, fail| VerdictCounts { receipts: 1, pass, fail, ..VerdictCounts::default() };
        assert_eq!(statistics.pass_rate(), Some(0.5));
        assert_eq!(statistics.by_tier["0"], one(1, 0));
        assert_eq!(statistics.by_tier["2"], one(0, 1));
        assert_eq!(statistics.by_task_type["code_generation"], one(0, 1));
        assert_eq!(statistics.by_task_type["none"], one(1, 0));
        assert_eq!(statistics.by_issuer[&verifier().public_key().did_key()].receipts, 2);
    }

    #[test]
    fn what_an_agent_says_about_itself_or_hides_or_cannot_prove_is_counted_apart() {
        let mut statistics = AgentStatistics::default();
        statistics.add(&evidence(VrfStatement::new(receipt_json(1), verifier().public_key().did_key())));
        statistics.add(&evidence(VrfStatement::new(receipt_json(2), AGENT).redacted()));
        let unverified = evidence(VrfStatement::new(receipt_json(3), AGENT));
        statistics.add(&VrfEvidence { outcome: VerificationOutcome::NotVerified, ..unverified });
        assert_eq!((statistics.counts, statistics.pass_rate()), (VerdictCounts::default(), None));
        assert_eq!(statistics.self_issued, SelfIssued { receipts: 1, pass: 1 });
        assert_eq!((statistics.redacted, statistics.unverified), (1, 1));
        assert_eq!(statistics.unverified_entries[0].code, "no-trust-anchors");
    }
}
