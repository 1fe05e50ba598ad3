//! Verifies that witnesses have cosigned the tree that contains a statement.
//!
//! A receipt proves that a log signed a tree with the statement in it, not that the log shows everyone the same tree.
//! Witnesses check that and cosign checkpoints (C2SP tlog-checkpoint). It must therefore be proven first that the
//! statement is in the checkpoint's tree: by a tlog-proof, which leads from the leaf to the checkpoint's root, or by a
//! verified receipt with the same root. Then the cosignatures are counted against the policy.
//!
//! Log keys come from the trust store and the policy, witness keys from the policy alone. Not here: whether a
//! cosignature is recent enough (the newest time is reported), and network access.

use std::str::FromStr;

use merkle::EntryDigest;
use merkle::verify::implied_root;
use serde::Serialize;
use tlog::checkpoint::Checkpoint;
use tlog::key::VerifierKey;
use tlog::note::{NotVerified, Note};
use tlog::policy::WitnessPolicy;
use tlog::proof::TlogProof;

use crate::receipt::{ReceiptReport, ReceiptSubject};
use crate::time::rfc3339;
use crate::trust::refuse_ended;
use crate::verdict::{
    Check, CheckName, CheckState, CheckpointFacts, Code, VerificationOutcome, WitnessCosignature,
};
use crate::{LeafRule, TrustStore, TrustedLog, to_signed};

/// A checkpoint or tlog-proof of the tree that contains a statement, and the required witnesses.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckpointEvidence<'e> {
    /// Proof of the tree.
    pub tree: TreeProof<'e>,
    /// Policy with the required witnesses; `None` requires none.
    pub policy: Option<&'e WitnessPolicy>,
}

/// Proof of the tree that contains a statement.
#[derive(Debug, Clone, Copy, Default)]
pub enum TreeProof<'e> {
    /// No proof.
    #[default]
    NotShown,
    /// A tlog-proof of the statement, which contains its checkpoint.
    Proof(&'e [u8]),
    /// The checkpoint of the tree that a receipt proves.
    Checkpoint(&'e [u8]),
}

/// Checks of checkpoint and cosignatures.
#[derive(Default)]
pub(crate) struct WitnessReport {
    pub(crate) checks: Vec<Check>,
    pub(crate) facts: Option<CheckpointFacts>,
    /// `true` if a tlog-proof proves that the statement is in a tree that a trusted log signed, which can replace a
    /// receipt.
    pub(crate) included: bool,
}

impl WitnessReport {
    /// Returns the code of the first failed check.
    pub(crate) fn failure(&self) -> Option<Code> {
        self.checks.iter().find(|check| check.state == CheckState::Failed).and_then(|check| check.code)
    }

    /// Returns the code of the first required check that was not done.
    pub(crate) fn gap(&self) -> Option<Code> {
        let not_done = self.checks.iter().filter(|check| check.state == CheckState::NotDone);
        not_done.filter_map(|check| check.code).find(|code| *code != Code::NoWitness)
    }

    fn conclude(self) -> CheckpointVerdict {
        let (outcome, reason) = match (self.failure(), self.gap()) {
            (Some(code), _) => (VerificationOutcome::Failed, Some(code)),
            (None, Some(code)) => (VerificationOutcome::NotVerified, Some(code)),
            (None, None) => (VerificationOutcome::Verified, None),
        };
        CheckpointVerdict { outcome, reason, checkpoint: self.facts, checks: self.checks }
    }
}

/// Checks the proof of the tree and the cosignatures, for a subject with these receipts.
pub(crate) fn check(
    checkpoint_evidence: &CheckpointEvidence<'_>,
    subject: ReceiptSubject<'_>,
    receipts: &[ReceiptReport],
    trust: &TrustStore,
) -> WitnessReport {
    let mut report = WitnessReport::default();
    let trusted_keys = TrustedCheckpointKeys { trust, keys: &[], policy: checkpoint_evidence.policy };
    let witness_check = WitnessCheck { checkpoint_evidence, subject, receipts, trusted_keys };
    let note = match witness_check.bind(&mut report) {
        Ok(note) => note,
        Err(check) => {
            let about_tree = check.name != CheckName::Witnesses;
            report.checks.push(check);
            if about_tree && checkpoint_evidence.policy.is_some() {
                report.checks.push(Check::not_reached(CheckName::Witnesses));
            } else if about_tree {
                report.checks.push(no_policy());
            }
            return report;
        }
    };
    report.checks.push(trusted_keys.count(&note, report.facts.as_mut()));
    report
}

/// Result of [`verify_checkpoint`] and [`verify_tlog_proof_of`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointVerdict {
    /// Overall result.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// Contents of the checkpoint; `None` if it cannot be parsed.
    pub checkpoint: Option<CheckpointFacts>,
    /// All checks, including those not done.
    pub checks: Vec<Check>,
}

/// Verifies a checkpoint: a key of its log from the trust store, the policy or `keys` must have signed it, and the
/// quorum of the policy must have cosigned it.
pub fn verify_checkpoint(
    note: &[u8],
    keys: &[VerifierKey],
    policy: Option<&WitnessPolicy>,
    trust: &TrustStore,
) -> CheckpointVerdict {
    let trusted_keys = TrustedCheckpointKeys { trust, keys, policy };
    let mut report = WitnessReport::default();
    let parsed = Note::parse(note)
        .map_err(|why| Check::failed(CheckName::Checkpoint, Code::MalformedCheckpoint, why.to_string()));
    match parsed.and_then(|note| Ok((trusted_keys.open(&note, &mut report)?, note))) {
        Ok(((_, opened), note)) => {
            let counted = trusted_keys.count(&note, report.facts.as_mut());
            report.checks.extend([opened, counted]);
        }
        Err(check) => report.checks.extend([check, Check::not_reached(CheckName::Witnesses)]),
    }
    report.conclude()
}

/// Verifies a tlog-proof of the statement with this entry ID, and the quorum of the policy.
pub fn verify_tlog_proof_of(
    entry: EntryDigest,
    proof: &[u8],
    policy: Option<&WitnessPolicy>,
    trust: &TrustStore,
) -> CheckpointVerdict {
    let checkpoint_evidence = CheckpointEvidence { tree: TreeProof::Proof(proof), policy };
    check(&checkpoint_evidence, ReceiptSubject { entry, statement: None }, &[], trust).conclude()
}

struct WitnessCheck<'a> {
    checkpoint_evidence: &'a CheckpointEvidence<'a>,
    subject: ReceiptSubject<'a>,
    receipts: &'a [ReceiptReport],
    trusted_keys: TrustedCheckpointKeys<'a>,
}

/// Keys whose signatures and cosignatures count.
#[derive(Clone, Copy)]
struct TrustedCheckpointKeys<'a> {
    trust: &'a TrustStore,
    /// Keys in addition to those of trust store and policy.
    keys: &'a [VerifierKey],
    policy: Option<&'a WitnessPolicy>,
}

impl WitnessCheck<'_> {
    /// Returns the checkpoint whose tree contains the statement.
    fn bind(&self, report: &mut WitnessReport) -> Result<Note, Check> {
        match self.checkpoint_evidence.tree {
            TreeProof::NotShown if self.checkpoint_evidence.policy.is_none() => Err(no_policy()),
            TreeProof::NotShown => {
                let why = "no checkpoint is shown that witnesses could have cosigned";
                Err(Check::not_done(CheckName::Witnesses, Code::NoCheckpoint, why))
            }
            TreeProof::Proof(bytes) => self.bind_by_proof(bytes, report),
            TreeProof::Checkpoint(bytes) => self.bind_by_receipt(bytes, report),
        }
    }

    fn bind_by_proof(&self, bytes: &[u8], report: &mut WitnessReport) -> Result<Note, Check> {
        let malformed = |why: String| Check::failed(CheckName::Checkpoint, Code::MalformedTlogProof, why);
        let text = std::str::from_utf8(bytes).map_err(|why| malformed(why.to_string()))?;
        let proof = TlogProof::from_str(text).map_err(|why| malformed(why.to_string()))?;
        let (checkpoint, opened) = self.trusted_keys.open(proof.note(), report)?;
        report.checks.push(opened);
        let leaf = self.subject.leaf(self.trusted_keys.leaf_rule(checkpoint.origin().as_str())).ok_or_else(
            || {
                let detail =
                    "this log's leaves are of whole statements, and only the hash of this one is at hand";
                Check::not_done(CheckName::Inclusion, Code::NotReached, detail)
            },
        )?;
        let name = CheckName::Inclusion;
        let root = implied_root(leaf, proof.index(), checkpoint.size(), proof.path())
            .map_err(|why| Check::failed(name, Code::ReceiptProofInvalid, why.to_string()))?;
        if root != checkpoint.root() {
            let detail =
                format!("leaf hash {leaf} leads to root {root}, the checkpoint's is {}", checkpoint.root());
            return Err(Check::failed(name, Code::TlogProofMismatch, detail));
        }
        let detail = format!("leaf {} of {} (tlog-proof)", proof.index(), checkpoint.size());
        report.checks.push(Check::ok(name, detail));
        report.included = true;
        Ok(proof.note().clone())
    }

    fn bind_by_receipt(&self, bytes: &[u8], report: &mut WitnessReport) -> Result<Note, Check> {
        let malformed = |why: String| Check::failed(CheckName::Checkpoint, Code::MalformedCheckpoint, why);
        let note = Note::parse(bytes).map_err(|why| malformed(why.to_string()))?;
        let (checkpoint, opened) = self.trusted_keys.open(&note, report)?;
        self.same_tree(&checkpoint)?;
        report.checks.push(opened);
        Ok(note)
    }

    /// Checks that a verified receipt has the same tree as the checkpoint.
    fn same_tree(&self, checkpoint: &Checkpoint) -> Result<(), Check> {
        let (origin, size, root) = (checkpoint.origin(), checkpoint.size(), checkpoint.root());
        let of_this_log = |report: &&ReceiptReport| {
            report.facts.verified && report.facts.log.as_deref() == Some(origin.as_str())
        };
        let mut others = Vec::new();
        for facts in self.receipts.iter().filter(of_this_log).map(|report| &report.facts) {
            let Some(position) = facts.position else { continue };
            let same_root = facts.root.as_deref() == Some(root.to_string().as_str());
            match (position.signed, position.tree_size == size) {
                (_, true) | (false, false) if same_root => return Ok(()),
                (true, true) => {
                    let theirs = facts.root.as_deref().unwrap_or_default();
                    let detail = format!(
                        "{origin} signed root {theirs} of size {size} in the receipt, and {root} here: it shows two trees"
                    );
                    return Err(Check::failed(CheckName::Checkpoint, Code::CheckpointRootMismatch, detail));
                }
                _ => others.push(position.tree_size.to_string()),
            }
        }
        let detail = match others.as_slice() {
            [] => format!("no receipt of {origin} verified that could lead to its checkpoint"),
            sizes => format!("the checkpoint is of size {size}, the receipt of {}", sizes.join(", ")),
        };
        Err(Check::not_done(CheckName::Checkpoint, Code::CheckpointOtherTree, detail))
    }
}

impl TrustedCheckpointKeys<'_> {
    /// Parses the checkpoint of a note, and verifies that a trusted key of its log has signed it.
    fn open(&self, note: &Note, report: &mut WitnessReport) -> Result<(Checkpoint, Check), Check> {
        let name = CheckName::Checkpoint;
        let checkpoint = Checkpoint::parse_text(note.text())
            .map_err(|why| Check::failed(name, Code::MalformedCheckpoint, why.to_string()))?;
        let origin = checkpoint.origin().as_str();
        report.facts = Some(CheckpointFacts {
            origin: origin.to_owned(),
            tree_size: checkpoint.size().get(),
            root: checkpoint.root().to_string(),
            cosigned: Vec::new(),
        });
        let keys = self.keys_of(origin);
        match note.verify(&keys) {
            Ok(signed) => {
                self.refuse_ended(&signed, &checkpoint)?;
                let by =
                    signed.first().map_or_else(String::new, |key| format!("{}+{}", key.name(), key.id()));
                let detail = format!("size {}, signed by {by}", checkpoint.size());
                Ok((checkpoint, Check::ok(name, detail)))
            }
            Err(NotVerified::NoKnownKey) => {
                let detail = format!("no checkpoint key of {origin:?} that is trusted here signed it");
                Err(Check::not_done(name, Code::UnknownCheckpointKey, detail))
            }
            Err(why @ NotVerified::BadSignature { .. }) => {
                Err(Check::failed(name, Code::CheckpointSignatureInvalid, why.to_string()))
            }
        }
    }

    /// Refuses a checkpoint if all its valid signatures are by keys after their end.
    fn refuse_ended(&self, signed: &[&VerifierKey], checkpoint: &Checkpoint) -> Result<(), Check> {
        let mut refused = Ok(());
        for key in signed {
            let text = key.to_string();
            let retired = self.trust.logs.iter().flat_map(|log| &log.retired_checkpoint_keys);
            let Some(retired) = retired.into_iter().find(|retired| retired.key == text) else {
                return Ok(());
            };
            let name = format!("{}+{}", key.name(), key.id());
            refused = refuse_ended(CheckName::Checkpoint, &name, &retired.end, checkpoint.size());
            if refused.is_ok() {
                return Ok(());
            }
        }
        refused
    }

    fn keys_of(&self, origin: &str) -> Vec<VerifierKey> {
        let trusted = self.trust.logs.iter().filter(|log| log.origin.as_deref() == Some(origin));
        let mut keys: Vec<VerifierKey> =
            trusted.flat_map(TrustedLog::all_checkpoint_keys).filter_map(|key| key.parse().ok()).collect();
        let named = self.policy.into_iter().flat_map(WitnessPolicy::logs).map(|log| &log.key);
        for key in named.chain(self.keys).filter(|key| key.name().as_str() == origin) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    fn leaf_rule(&self, origin: &str) -> LeafRule {
        let log = self.trust.logs.iter().find(|log| log.origin.as_deref() == Some(origin));
        log.map(|log| log.leaf_rule).unwrap_or_default()
    }

    fn count(&self, note: &Note, facts: Option<&mut CheckpointFacts>) -> Check {
        let Some(policy) = self.policy else { return no_policy() };
        let judged = policy.judge(note);
        let names: Vec<&str> = judged.cosigned.iter().map(|(name, _)| name.as_str()).collect();
        let newest = judged.cosigned.iter().map(|(_, at)| *at).max();
        let mut detail = format!("{} of {}", names.len(), policy.witnesses().len());
        if !names.is_empty() {
            detail.push_str(&format!(" ({})", names.join(", ")));
        }
        if let Some(newest) = newest {
            detail.push_str(&format!(", newest {}", rfc3339(to_signed(newest))));
        }
        if let Some(facts) = facts {
            let cosigned = judged.cosigned.iter();
            facts.cosigned = cosigned
                .map(|(witness, at)| WitnessCosignature { witness: witness.clone(), at: *at })
                .collect();
        }
        match (policy.quorum_name(), judged.met) {
            (None, _) => {
                let detail = format!("the policy asks for none ({detail} cosigned)");
                Check::not_done(CheckName::Witnesses, Code::NoWitness, detail)
            }
            (Some(_), true) => Check::ok(CheckName::Witnesses, detail),
            (Some(quorum), false) => {
                let detail = format!("{detail}: quorum {quorum:?} is not met");
                Check::failed(CheckName::Witnesses, Code::QuorumNotMet, detail)
            }
        }
    }
}

fn no_policy() -> Check {
    Check::not_done(CheckName::Witnesses, Code::NoWitness, "none configured")
}
