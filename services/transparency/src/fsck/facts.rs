//! Interpretation of a log's bytes for the check of its storage (`store::fsck`), which does not know COSE.
//!
//! Guards and twins are derived again from statement, policy, and the entries below, so a lost row is detected. No
//! guards are derived for an entry without bytes, or without its detached payload. Certificates that are missing, and
//! certificates or a payload that are not the admitted ones, are findings.

use std::collections::{BTreeMap, HashSet};
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use registration::{COLLATERAL_PAYLOAD, COLLATERAL_X5CHAIN, Policy, PolicyInForce, Questions, SideData};
use scitt::{SignedStatement, X5Chain};
use store::fsck::{DerivedGuards, FsckFacts};
use store::lookup::EntryTerms;
use store::{
    Collateral, CommittedHead, Cosignature, Entry, FsckStore, GuardKey, HeadSignature, LogKey, LogReader,
    SignatureKind, StoreError,
};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{NotANote, Note};

use crate::index;
use crate::keys::recorded::{check_head_signature, check_key};
use crate::limits::POLICIES_AT_HAND;
use crate::log::admission::ask;
use crate::log::erasures;
use crate::log::terms::entry_terms;
use crate::operator::effects;

/// The signatures that every head must have.
const KINDS: [SignatureKind; 2] = [SignatureKind::Receipt, SignatureKind::Checkpoint];

/// The interpretation of one log's entries and signatures.
///
/// Policies and erasures are read once an entry needs them.
pub struct LogFacts {
    origin: Origin,
    known: Mutex<FactsCache>,
}

/// The policies and erasures read so far.
#[derive(Default)]
struct FactsCache {
    /// Policies by their leaf; `None` if the entry is not a readable policy.
    policies: BTreeMap<LeafIndex, Option<PolicyInForce>>,
    /// Entries named by erasure statements of the log.
    erased: HashSet<LeafIndex>,
    /// The number of erasures read.
    erasures: u64,
}

impl LogFacts {
    /// Creates the interpretation for the log with this origin.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the origin is malformed.
    pub fn of(origin: &str) -> Result<Self, StoreError> {
        let origin =
            origin.parse().map_err(|_| StoreError::Refused(format!("{origin:?} is not an origin")))?;
        Ok(Self { origin, known: Mutex::default() })
    }

    fn known(&self) -> MutexGuard<'_, FactsCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a policy that entries name, and caches at most [`POLICIES_AT_HAND`].
    async fn fetch(&self, store: &dyn LogReader, leaf: LeafIndex) -> Result<(), StoreError> {
        let policy = match store.entry(leaf).await.and_then(|entry| entry.map(Entry::verified).transpose()) {
            Ok(entry) => entry.and_then(|entry| policy_in(&entry)),
            Err(StoreError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        let mut known = self.known();
        known.policies.insert(leaf, policy);
        while known.policies.len() > POLICIES_AT_HAND {
            known.policies.pop_first();
        }
        Ok(())
    }

    /// Reads the erasures not read yet. A statement is on the log before the bytes are deleted, so an erased entry
    /// without one is damaged.
    async fn fetch_erasures(&self, store: &dyn LogReader) -> Result<(), StoreError> {
        let from = self.known().erasures;
        let count = erasures::count(store).await?;
        for number in from..count {
            let erased = erased(store, number).await?;
            let mut known = self.known();
            known.erased.extend(erased);
            known.erasures = number + 1;
        }
        Ok(())
    }

    fn policy_of(&self, entry: &Entry) -> Option<PolicyInForce> {
        self.known().policies.get(&entry.policy).cloned().flatten()
    }

    fn stored(&self, entry: &Entry) -> Option<StoredStatement> {
        let (policy, statement) = self.policy_of(entry).zip(parse(entry))?;
        Some(StoredStatement { leaf: entry.index, policy, statement, payload: None, x5chain: None })
    }
}

/// The statement of an entry with the policy that admitted it, and what is stored beside it.
struct StoredStatement {
    leaf: LeafIndex,
    policy: PolicyInForce,
    statement: SignedStatement,
    payload: Option<Bytes>,
    x5chain: Option<X5Chain>,
}

impl StoredStatement {
    /// Returns `true` if it was decided with bytes that are stored beside it.
    fn needs_collateral(&self) -> bool {
        let header = self.statement.header();
        self.statement.is_detached() || (header.x5t().is_some() && header.x5chain().is_none())
    }

    /// Reads what is stored beside the statement. The inner error says why the certificate chain cannot be read.
    async fn read_collateral(&mut self, store: &dyn LogReader) -> Result<Result<(), String>, StoreError> {
        for Collateral { kind, bytes } in store.collateral(self.leaf).await? {
            match kind {
                COLLATERAL_PAYLOAD => self.payload = Some(bytes),
                COLLATERAL_X5CHAIN => match X5Chain::decode(&bytes) {
                    Ok(chain) => self.x5chain = Some(chain),
                    Err(why) => return Ok(Err(format!("the certificate chain: {why}"))),
                },
                _ => {}
            }
        }
        Ok(Ok(()))
    }

    fn side_data(&self) -> SideData<'_> {
        SideData { payload: self.payload.as_deref(), x5chain: self.x5chain.as_ref() }
    }
}

/// Derives the guards of a statement that was decided with bytes beside it.
async fn derive_with_collateral(
    store: &dyn LogReader,
    mut stored: StoredStatement,
) -> Result<DerivedGuards, StoreError> {
    let derived = match stored.read_collateral(store).await? {
        Ok(()) => derive_guards(store, slice::from_ref(&stored)).await?,
        Err(why) => DerivedGuards { held: Vec::new(), damaged: vec![(stored.leaf, why)] },
    };
    // An erasure takes both: the collateral may have gone after the statement was read.
    if !derived.damaged.is_empty() && !has_statement(store, stored.leaf).await? {
        return Ok(DerivedGuards::default());
    }
    Ok(derived)
}

async fn has_statement(store: &dyn LogReader, leaf: LeafIndex) -> Result<bool, StoreError> {
    Ok(store.entry(leaf).await?.is_some_and(|entry| entry.statement.is_some()))
}

/// Derives the guards that these statements claimed, each from the entries below it.
async fn derive_guards(
    store: &dyn LogReader,
    stored: &[StoredStatement],
) -> Result<DerivedGuards, StoreError> {
    let mut derived = DerivedGuards::default();
    let (mut read, mut asked) = (Vec::with_capacity(stored.len()), Questions::default());
    for stored in stored {
        let admitted = match stored.policy.read_again(&stored.statement, stored.side_data()) {
            Ok(Some(admitted)) => admitted,
            Ok(None) => continue,
            Err(violation) => {
                derived.damaged.push((stored.leaf, violation.to_string()));
                continue;
            }
        };
        let Questions { digests, guards } = stored.policy.questions_again(&admitted);
        asked.digests.extend(digests);
        asked.guards.extend(guards);
        read.push((stored, admitted));
    }
    let known = ask(store, asked).await?;
    for (stored, admitted) in &read {
        let guards = stored.policy.claimed_again(admitted, &known.below(stored.leaf)).unwrap_or_default();
        derived.held.extend(guards.iter().map(|guard| (GuardKey(guard.as_bytes().to_vec()), stored.leaf)));
    }
    Ok(derived)
}

#[async_trait]
impl FsckFacts for LogFacts {
    async fn prepare(&self, store: &dyn LogReader, entries: &[&Entry]) -> Result<(), StoreError> {
        for entry in entries {
            if !self.known().policies.contains_key(&entry.policy) {
                self.fetch(store, entry.policy).await?;
            }
        }
        let unexplained = |entry: &&&Entry| entry.statement.is_none() && !self.may_be_erased(entry.index);
        match entries.iter().find(unexplained) {
            Some(_) => self.fetch_erasures(store).await,
            None => Ok(()),
        }
    }

    async fn guards(&self, store: &dyn LogReader, entries: &[&Entry]) -> Result<DerivedGuards, StoreError> {
        let stored: Vec<StoredStatement> = entries.iter().filter_map(|entry| self.stored(entry)).collect();
        let (incomplete, whole): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(StoredStatement::needs_collateral);
        // A whole statement is compared with its digest. Only the leaf of its policy can be wrong, which the audit
        // proves; the guards are not checked then.
        let mut derived = DerivedGuards { damaged: Vec::new(), ..derive_guards(store, &whole).await? };
        // One at a time: a payload may be as large as the statements of a whole page.
        for statement in incomplete {
            let DerivedGuards { held, damaged } = derive_with_collateral(store, statement).await?;
            derived.held.extend(held);
            derived.damaged.extend(damaged);
        }
        derived.held.sort_by_key(|(_, leaf)| *leaf);
        Ok(derived)
    }

    fn twin(&self, entry: &Entry) -> Option<EntryDigest> {
        parse(entry)?.twin()
    }

    fn lookup_form(&self) -> Option<u32> {
        Some(index::FORM)
    }

    async fn terms(&self, store: &dyn LogReader, entry: &Entry) -> Result<Option<EntryTerms>, StoreError> {
        index::values_of(store, entry.clone()).await.map(|values| Some(entry_terms(values)))
    }

    async fn explains_time(
        &self,
        store: &dyn LogReader,
        before: &CommittedHead,
        after: &CommittedHead,
    ) -> Result<bool, StoreError> {
        let entry = match store.entry(before.size.next_leaf()).await {
            Ok(Some(entry)) => entry.verified(),
            Ok(None) => return Ok(false),
            Err(error) => Err(error),
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(StoreError::Damaged(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.prepare(store, &[&entry]).await?;
        let (policy, statement) = (self.policy_of(&entry), parse(&entry));
        let correction = policy.zip(statement).and_then(|(policy, it)| policy.clock_correction(&it));
        Ok(correction.is_some_and(|it| it.explains(before.size, before.at, after.at)))
    }

    async fn effect_missing(
        &self,
        store: &dyn FsckStore,
        entry: &Entry,
    ) -> Result<Option<String>, StoreError> {
        effects::effect_missing(store, entry).await
    }

    fn may_be_erased(&self, index: LeafIndex) -> bool {
        self.known().erased.contains(&index)
    }

    fn kinds(&self) -> &[SignatureKind] {
        &KINDS
    }

    fn check_key(&self, key: &LogKey) -> Result<(), String> {
        check_key(key)
    }

    fn check_cosignature(&self, head: &CommittedHead, kept: &Cosignature) -> Result<(), String> {
        // The ID of a witness in the store is its key.
        let key = std::str::from_utf8(&kept.witness).ok().and_then(|text| text.parse::<VerifierKey>().ok());
        let key = key.ok_or("its witness is not a key")?;
        let line = std::str::from_utf8(&kept.line).map_err(|why| why.to_string())?;
        let line = line.parse().map_err(|why: NotANote| why.to_string())?;
        let checkpoint = Checkpoint::new(self.origin.clone(), head.size, head.root);
        let text = checkpoint.map_err(|why| why.to_string())?.text();
        let note = Note::from_parts(&text, vec![line]).map_err(|why| why.to_string())?;
        match cosignature::verified(&note, &key) {
            Some(at) if at == kept.at => Ok(()),
            Some(at) => Err(format!("it was made at {at}, and is stored as made at {}", kept.at)),
            None => Err("it does not verify".to_owned()),
        }
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        check_head_signature(&self.origin, head, signature, keys)
    }
}

/// The entries that an erasure statement names. A damaged one explains no erasure; the check reports it separately.
async fn erased(store: &dyn LogReader, number: u64) -> Result<Vec<LeafIndex>, StoreError> {
    let registered = match erasures::registered(store, number..number + 1).await {
        Ok(registered) => registered,
        Err(StoreError::Damaged(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut erased = Vec::new();
    for found in registered {
        erased.extend(erasures::erased_leaves(store, &found.erasure).await?);
    }
    Ok(erased)
}

fn policy_in(entry: &Entry) -> Option<PolicyInForce> {
    let statement = parse(entry)?;
    let named = statement.header().content_type().and_then(|name| name.as_text());
    let payload = statement.payload().filter(|_| named == Some(registration::POLICY_CONTENT_TYPE))?;
    Policy::from_payload(payload).ok().map(|policy| PolicyInForce::new(policy, entry.index))
}

fn parse(entry: &Entry) -> Option<SignedStatement> {
    SignedStatement::parse(entry.statement.clone()?).ok()
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
