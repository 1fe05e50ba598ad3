//! What a log's bytes mean, for the check of its storage (`store::fsck`), which knows no COSE.
//!
//! Guards and twins are derived again from statement and policy, so a lost row is noticed. An entry whose issuer was
//! established by a certificate that came beside it derives no guards here: the collateral is not at hand.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use merkle::{EntryDigest, LeafIndex};
use registration::{Answers, Beside, Policy, PolicyInForce, Record};
use scitt::receipt::SignedRoot;
use scitt::{CoseKey, SignedStatement};
use store::fsck::{Finding, Meaning, Report};
use store::{CommittedHead, Entry, GuardKey, HeadSignature, LogKey, LogStore, SignatureKind, StoreError};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::VerifierKey;

use crate::erasure;

/// The meaning of one log's entries and signatures.
///
/// Policies are learnt from the entries as they are shown, in order; those that a check does not begin with are
/// fetched first by [`LogMeaning::of`].
pub struct LogMeaning {
    origin: Origin,
    policies: Mutex<BTreeMap<LeafIndex, Option<PolicyInForce>>>,
    /// Every entry that an erasure statement of the log names.
    erased: HashSet<LeafIndex>,
}

impl LogMeaning {
    /// Of the log in this store, whose origin the operator names.
    ///
    /// # Errors
    /// If the store cannot be read, or the origin is not one.
    pub async fn of(store: &dyn LogStore, origin: &str) -> Result<Self, StoreError> {
        let parsed = origin.parse().map_err(|_| StoreError::Refused(format!("{origin:?} is no origin")))?;
        let erased = erased(store).await?;
        let meaning = Self { origin: parsed, policies: Mutex::default(), erased };
        if let Ok(head) = store.head().await
            && let Ok(Some(entry)) = store.entry(head.policy).await
        {
            meaning.learn(&entry);
        }
        Ok(meaning)
    }

    fn learn(&self, entry: &Entry) {
        let Some(statement) = parse(entry) else { return };
        let is_policy = statement.header().content_type().and_then(|name| name.as_text())
            == Some(registration::POLICY_CONTENT_TYPE);
        if is_policy {
            let policy = statement.payload().and_then(|payload| Policy::from_payload(payload).ok());
            let in_force = policy.map(|policy| PolicyInForce::new(policy, entry.index));
            self.policies.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.index, in_force);
        }
    }

    fn policy_of(&self, entry: &Entry) -> Option<PolicyInForce> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner).get(&entry.policy).cloned().flatten()
    }

    fn check_receipt(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        let signed = SignedRoot::parse(signature.bytes.clone()).map_err(|error| error.to_string())?;
        if signed.tree_size() != head.size {
            return Err(format!("it signs size {}", signed.tree_size()));
        }
        let key = keys.iter().find(|key| key.kid == signature.kid).ok_or("its key is not on record")?;
        let key = CoseKey::parse(&key.public).map_err(|error| error.to_string())?;
        signed.verify(&head.root, &key.key).map_err(|error| error.to_string())
    }

    fn check_checkpoint(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        let vkeys: Vec<VerifierKey> =
            keys.iter().filter_map(|key| std::str::from_utf8(&key.public).ok()?.parse().ok()).collect();
        let checkpoint =
            Checkpoint::open(&signature.bytes, &self.origin, &vkeys).map_err(|error| error.to_string())?;
        if (checkpoint.size(), checkpoint.root()) != (head.size, head.root) {
            return Err(format!("it signs size {} and root {}", checkpoint.size(), checkpoint.root()));
        }
        Ok(())
    }
}

impl Meaning for LogMeaning {
    fn guards(&self, entry: &Entry) -> Vec<GuardKey> {
        self.learn(entry);
        let Some((policy, statement)) = self.policy_of(entry).zip(parse(entry)) else { return Vec::new() };
        let derive = || {
            let authenticated = policy.authenticate(&statement, Beside::default()).ok()?;
            let record = Record::read(&authenticated).ok()?;
            if let Record::Erasure(erasure) = &record {
                let guards = erasure.guards(&entry.digest);
                return Some(guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect());
            }
            let permit = policy.decide(&authenticated, &record, &Answers::none()).into_permit().ok()?;
            Some(permit.guards().iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect())
        };
        derive().unwrap_or_default()
    }

    fn twin(&self, entry: &Entry) -> Option<EntryDigest> {
        parse(entry)?.twin()
    }

    fn may_be_erased(&self, index: LeafIndex) -> bool {
        self.erased.contains(&index)
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        match signature.kind {
            SignatureKind::Receipt => self.check_receipt(head, signature, keys),
            SignatureKind::Checkpoint => self.check_checkpoint(head, signature, keys),
            SignatureKind::Cosignature => Ok(()),
        }
    }
}

/// The entries that erasure statements name. One that cannot be read excuses nothing, and is found for itself.
async fn erased(store: &dyn LogStore) -> Result<HashSet<LeafIndex>, StoreError> {
    let mut erased = HashSet::new();
    for number in 0..erasure::count(store).await? {
        match erasure::registered(store, number..number + 1).await {
            Ok(found) => {
                for found in found {
                    erased.extend(erasure::erased_leaves(store, &found.erasure).await?);
                }
            }
            Err(StoreError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(erased)
}

/// Takes back what a check of a running log found of entries that were erased while it looked.
///
/// # Errors
/// If the store cannot be read.
pub async fn excuse_erasures(store: &dyn LogStore, report: &mut Report) -> Result<(), StoreError> {
    let silently = |finding: &Finding| matches!(finding, Finding::ErasedSilently { .. });
    if report.findings.iter().any(silently) {
        let erased = erased(store).await?;
        report.findings.retain(
            |finding| !matches!(finding, Finding::ErasedSilently { index } if erased.contains(index)),
        );
    }
    Ok(())
}

fn parse(entry: &Entry) -> Option<SignedStatement> {
    SignedStatement::parse(entry.statement.clone()?).ok()
}
