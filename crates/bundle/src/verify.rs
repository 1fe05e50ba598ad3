//! Verification of a bundle: each entry with its receipt and its proof, the policies, and the answers of searches.
//!
//! Policies are statements of the log's operator, whom a reader need not know: if the trust store has no key of theirs,
//! their signature is left to the log, which verified it. That a policy admitted an entry is an unsigned claim; the bundle
//! is verified only if the policy is in it and is registered before the entry. The list of a search's entries is unsigned,
//! too: whoever takes an entry out of the file can take it out of the list.

use std::collections::BTreeSet;

use merkle::{EntryDigest, LeafIndex};
use tlog::policy::WitnessPolicy;
use tlog::proof::TlogProof;
use verifier::{
    Check, CheckName, CheckState, CheckpointEvidence, Code, IssuerSignature, StatementEvidence,
    StatementVerdict, TreeProof, TrustStore, VerificationOutcome, verify_checkpoint, verify_with_checkpoint,
};

use crate::model::{BundleEntry, BundleSelection, EvidenceBundle, POLICY_TYPE};
use crate::verdict::BundleVerdict;

impl EvidenceBundle {
    /// Verifies the bundle at `now` (Unix seconds). Keys come from `trust` only, and witnesses from `witnesses`; without
    /// a policy no cosignature is required.
    pub fn verify(&self, trust: &TrustStore, witnesses: Option<&WitnessPolicy>, now: u64) -> BundleVerdict {
        let operators = TrustStore { issuer_signature: IssuerSignature::LeftToLog, ..trust.clone() };
        let input = VerificationInput { checkpoint: &self.checkpoint, witnesses, now };
        let mut entries = Vec::new();
        for entry in &self.entries {
            let mut verdict = input.verify(entry, trust);
            verdict.add(self.check_policy(entry));
            entries.push(verdict);
        }
        let policies: Vec<_> =
            self.policies.iter().map(|policy| input.verify_policy(policy, &operators)).collect();
        let checkpoint = verify_checkpoint(self.checkpoint.as_bytes(), &[], witnesses, trust);
        let checks = self.check_selections(&entries);
        BundleVerdict::of(checkpoint, entries, policies, checks)
    }

    /// Checks that the policy that admitted the entry is in the bundle, and registered before the entry.
    fn check_policy(&self, entry: &BundleEntry) -> Check {
        let name = CheckName::Policy;
        let Some(admitted_by) = &entry.admitted_by else {
            return failed(name, Code::PolicyMissing, "the entry names no policy".to_owned());
        };
        let (policy, index) = (admitted_by.policy, entry.proof.index);
        if !self.policies.iter().any(|known| known.proof.index == policy) {
            let detail = format!("the policy at leaf {policy} is not in the bundle");
            return failed(name, Code::PolicyMissing, detail);
        }
        // The first policy of a log is admitted by itself.
        if policy > index {
            let detail =
                format!("the policy at leaf {policy} was registered after the entry at leaf {index}");
            return failed(name, Code::PolicyTooLate, detail);
        }
        let detail =
            format!("leaf {policy}, rule {:?}: an unsigned claim, which an audit verifies", admitted_by.rule);
        Check { name, receipt: None, state: CheckState::Ok, code: None, detail }
    }

    /// Checks for each search that the entries which the index named are in the bundle.
    fn check_selections(&self, verdicts: &[StatementVerdict]) -> Vec<Check> {
        let held: BTreeSet<EntryDigest> = verdicts
            .iter()
            .filter_map(|verdict| verdict.statement.as_ref())
            .map(|facts| facts.entry)
            .collect();
        self.selections.iter().flat_map(|selection| check_selection(selection, &held)).collect()
    }
}

/// Input that all entries of a bundle share.
struct VerificationInput<'b> {
    checkpoint: &'b str,
    witnesses: Option<&'b WitnessPolicy>,
    now: u64,
}

impl VerificationInput<'_> {
    fn verify(&self, entry: &BundleEntry, trust: &TrustStore) -> StatementVerdict {
        let receipts: [&[u8]; 1] = [&entry.receipt];
        let evidence = StatementEvidence {
            statement: &entry.statement,
            receipts: &receipts,
            payload: entry.payload.as_deref(),
        };
        let proof = self.tlog_proof(entry);
        let tree = CheckpointEvidence { tree: TreeProof::Proof(proof.as_bytes()), policy: self.witnesses };
        let mut verdict = verify_with_checkpoint(&evidence, &tree, trust, self.now);
        require_receipt(&mut verdict);
        verdict
    }

    fn verify_policy(&self, policy: &BundleEntry, trust: &TrustStore) -> StatementVerdict {
        let mut verdict = self.verify(policy, trust);
        let content_type = verdict.statement.as_ref().and_then(|facts| facts.content_type.as_deref());
        if content_type != Some(POLICY_TYPE) {
            let found = content_type.unwrap_or("no content type");
            let detail = format!("{found:?} is not {POLICY_TYPE}");
            verdict.add(failed(CheckName::Policy, Code::PolicyMissing, detail));
        }
        verdict
    }

    /// Returns the entry's proof with the checkpoint. A checkpoint that is not a signed note gives an empty text, which the
    /// verifier refuses.
    fn tlog_proof(&self, entry: &BundleEntry) -> String {
        let (index, path) = (LeafIndex::new(entry.proof.index), entry.proof.path.clone());
        TlogProof::new(index, path, self.checkpoint.as_bytes())
            .map_or_else(|_| String::new(), |proof| proof.to_string())
    }
}

/// Requires a verified receipt of an entry also where its proof is verified. A statement may have further receipts, of logs
/// that the trust store does not have.
fn require_receipt(verdict: &mut StatementVerdict) {
    let has_receipt = verdict.receipts.is_empty() || verdict.receipts.iter().any(|receipt| receipt.verified);
    if !verdict.is_verified() || has_receipt {
        return;
    }
    let codes = verdict.checks.iter().filter(|check| check.receipt.is_some()).filter_map(|check| check.code);
    let reason = codes.into_iter().find(|code| *code != Code::NotReached).unwrap_or(Code::NotReached);
    (verdict.outcome, verdict.reason) = (VerificationOutcome::NotVerified, Some(reason));
}

fn check_selection(selection: &BundleSelection, held: &BTreeSet<EntryDigest>) -> [Check; 2] {
    let BundleSelection { by, entries, indexed_to, name: value } = selection;
    let subject = format!("{} {value:?}", by.as_str());
    let missing: Vec<_> = entries.iter().filter(|entry| !held.contains(entry)).collect();
    let name = CheckName::Selection;
    let named = match missing.first() {
        Some(first) => {
            let detail = format!("of {subject} the bundle lacks entries: {}, first {first}", missing.len());
            failed(name, Code::EntryMissing, detail)
        }
        None => {
            let detail = format!("all entries that the bundle lists of {subject}: {}", entries.len());
            Check { name, receipt: None, state: CheckState::Ok, code: None, detail }
        }
    };
    let detail = format!(
        "no signature shows that {subject} has no other entry up to tree size {indexed_to}, as the log's index said"
    );
    let (state, code) = (CheckState::NotDone, Some(Code::IndexNotProven));
    [named, Check { name: CheckName::Completeness, receipt: None, state, code, detail }]
}

fn failed(name: CheckName, code: Code, detail: String) -> Check {
    Check { name, receipt: None, state: CheckState::Failed, code: Some(code), detail }
}
