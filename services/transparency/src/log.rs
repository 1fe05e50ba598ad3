//! The log of a running service, as the routes use it: register, resolve, read.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use registration::operator::Effect;
use registration::{GuardKind, Permit};
use scitt::SignedStatement;
use sequencer::{Halt, Handle, Placement, Role, SubmitError};
use store::{Found, GuardKey, LogStore, Progress, StoreError};

use crate::admission::{self, CameBeside, NotAdmitted, Policies, PolicyUnreadable};
use crate::doors::Doorkeeper;
use crate::equivocation;
use crate::erasure::Erasing;
use crate::free_space::FreeSpace;
use crate::fsck::Standing;
use crate::issuer_door::Bill;
use crate::limits::DECISIONS;
use crate::metrics::{Metrics, Outcome};
use crate::published_keys::PublishedKeys;
use crate::receipts::{NoReceipt, Receipts};
use crate::signer::LogSigner;
use crate::witnessing::Witnessing;

/// The permanent identity of the log, with the keys in use.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The log's name in checkpoints and the `sub` of receipts.
    pub origin: String,
    /// The `iss` of receipts.
    pub iss: String,
    /// The URL at which clients reach the log.
    pub public_url: String,
    /// Kid of the receipt key: base64url of the RFC 9679 thumbprint.
    pub receipt_kid: String,
    /// Signature algorithm of the receipts.
    pub receipt_algorithm: &'static str,
    /// The checkpoint key, as a C2SP verifier key.
    pub checkpoint_key: String,
}

/// The log's state, shared by all handlers.
pub struct Log {
    /// The log's names and keys.
    pub identity: Identity,
    /// The database that stores the log.
    pub store: Arc<dyn LogStore>,
    /// The handle of the sequencer, which orders entries into batches.
    pub sequencer: Handle,
    /// The policy in force.
    pub policies: Arc<Policies>,
    /// The maker of receipts.
    pub receipts: Receipts,
    /// The published keys that verify receipts and checkpoints.
    pub keys: ArcSwap<PublishedKeys>,
    /// The signer of the log's heads.
    pub signer: Arc<LogSigner>,
    /// The reason why registration is refused, found after the start.
    pub obstacle: ArcSwapOption<String>,
    /// The findings of the storage check.
    pub fsck: Standing,
    /// The free space of the disks.
    pub space: FreeSpace,
    /// The witnesses and their cosignatures.
    pub witnessing: Arc<Witnessing>,
    /// Wakes the task that deletes erased bytes.
    pub erasing: Erasing,
    /// The rate limiter with the issuer quotas.
    pub doors: Arc<Doorkeeper>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

/// A statement that is in the log, or durably accepted.
#[derive(Debug)]
pub enum Registered {
    /// The statement is in the log, with a receipt.
    Receipt {
        /// The statement's leaf.
        index: LeafIndex,
        /// The receipt.
        receipt: Bytes,
    },
    /// The statement is accepted; the receipt is available later.
    Later,
}

/// Reason why a statement was not registered.
#[derive(Debug)]
pub enum RegisterError {
    /// The policy did not admit the statement.
    NotAdmitted(NotAdmitted),
    /// A guard that the statement claims is taken (code `policy` or `chain_fork`).
    GuardTaken {
        /// The refusal, by the rule that the claim violates.
        refusal: Box<registration::Refusal>,
        /// The entry that has taken the guard, if it can be read.
        by: Option<EntryDigest>,
        /// `true` if the guard is a position in a chain: then the issuer has signed two statements for one position.
        forks: bool,
    },
    /// The log's time is outside the statement's validity.
    OutsideWindow(Box<registration::Refusal>),
    /// Another encoding of the same signature is registered, as this entry.
    Twin(EntryDigest),
    /// The sequencer's queue is full (code `queue-full`).
    QueueFull {
        /// Seconds until a retry is worthwhile.
        retry_after: u64,
    },
    /// The inbox has no room for the statement (code `inbox-full`).
    InboxFull {
        /// `true` if only this issuer's part of the inbox is full.
        issuer_only: bool,
        /// Seconds until a retry is worthwhile.
        retry_after: u64,
    },
    /// The log changed during each of [`DECISIONS`] decisions.
    KeepsMoving,
    /// The log has no policy yet (code `no-policy`).
    NoPolicy,
    /// The log is frozen (code `log-frozen`).
    Frozen,
    /// Sequencing stopped (code `log-halted`).
    Halted(String),
    /// The process is stopping (code `stopping`).
    Stopping,
    /// The policy in force cannot be read.
    Policy(PolicyUnreadable),
    /// The disk is almost full (code `storage-full`).
    LowSpace(Arc<String>),
    /// The database failed.
    Store(Arc<StoreError>),
    /// The statement is in the log, and its receipt cannot be made now.
    NoReceipt(NoReceipt),
    /// An internal error.
    Internal(String),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// The state of an entry ID.
#[derive(Debug)]
pub enum Resolved {
    /// The entry is in the log; its receipt.
    Receipt(Bytes),
    /// The statement is accepted and not in the log yet.
    Pending,
    /// The statement was accepted and then refused, for this reason.
    Failed(String),
    /// The log does not know the entry ID.
    Unknown,
}

impl Log {
    /// Registers a statement. Registering the same statement again creates no second entry.
    ///
    /// A detached `payload` is checked against the signature also if the statement is registered already, so that a
    /// client that mixed up two files gets an error.
    pub async fn register(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
    ) -> Result<Registered, RegisterError> {
        let outcome = self.place(statement, payload).await;
        self.metrics.registration(outcome_of(&outcome));
        outcome.map(|(registered, _)| registered)
    }

    async fn place(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
    ) -> Result<(Registered, bool), RegisterError> {
        // The sequencer detects duplicates itself. This look-up spares a known statement the way through a follower, a
        // refusal under a newer policy, and a charge: resubmitting a registered statement is not charged to the
        // issuer's quota.
        let leads = matches!(self.sequencer.status().borrow().role, Role::Leading { .. });
        let mut bill = self.doors.bill();
        if (!leads || bill.counts())
            && payload.is_none()
            && let Some(known) = self.known(statement).await?
        {
            return Ok((known, true));
        }
        if bill.counts() && self.waits(statement).await? {
            bill.waive();
        }
        let outcome = match self.decide_and_submit(statement, payload, &mut bill).await {
            Err(error) if payload.is_some() && is_about_the_payload(&error) => Err(error),
            Err(error) if may_be_known(&error) => match self.known(statement).await {
                Ok(Some(known)) => Ok((known, true)),
                Ok(None) => Err(error),
                Err(unknown) => Err(unknown),
            },
            outcome => outcome,
        };
        if costs_nothing(&outcome) {
            bill.give_back().await;
        }
        outcome
    }

    /// Returns `true` if the statement was accepted before and is not in the log yet.
    async fn waits(&self, statement: &SignedStatement) -> Result<bool, RegisterError> {
        let progress = self.store.progress(&statement.digest()).await;
        let progress = progress.map_err(RegisterError::from)?;
        Ok(matches!(progress, Some(Progress::Pending)))
    }

    async fn decide_and_submit(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        bill: &mut Bill,
    ) -> Result<(Registered, bool), RegisterError> {
        if let Some(obstacle) = self.obstacle.load_full() {
            return Err(RegisterError::Halted(obstacle.to_string()));
        }
        if let Some(why) = self.space.low() {
            return Err(RegisterError::LowSpace(why));
        }
        for _ in 0..DECISIONS {
            let current = self.policies.current().ok_or(RegisterError::NoPolicy)?;
            let admitted = admission::admit(
                statement,
                CameBeside { payload, x5chain: None },
                &current.in_force,
                &*self.store,
                &self.metrics,
                Some(&mut *bill),
            );
            let admitted = admitted.await.map_err(RegisterError::NotAdmitted)?;
            let started = Instant::now();
            let outcome = self.sequencer.submit_for(&admitted.issuer, admitted.submission).await;
            self.metrics.stage("queue", started.elapsed());
            match outcome {
                Ok(placement) => {
                    // A client that gets the receipt of a policy must find the policy in force.
                    if admitted.permit.guards().iter().any(|guard| guard.kind() == GuardKind::ErasureSequence)
                    {
                        self.erasing.look();
                    }
                    if matches!(admitted.permit.effect(), Some(Effect::Release { .. })) {
                        self.erasing.look();
                    }
                    if admitted.permit.successor().is_some() {
                        self.policies.follow(placement.index).await.map_err(RegisterError::Policy)?;
                    }
                    return self.placed(placement).await;
                }
                Err(SubmitError::Accepted) => return Ok((Registered::Later, false)),
                Err(SubmitError::PolicyMoved { policy }) => {
                    self.policies.follow(policy).await.map_err(RegisterError::Policy)?;
                }
                Err(SubmitError::RelyOnAbsent { .. }) => {}
                Err(error) => {
                    if bill.is_charged() && self.refused_before(&error, statement).await {
                        bill.give_back().await;
                    }
                    return Err(self.refused(error, &admitted.permit, statement).await);
                }
            }
        }
        Err(RegisterError::KeepsMoving)
    }

    async fn placed(&self, placement: Placement) -> Result<(Registered, bool), RegisterError> {
        match self.receipts.placed(&placement, &self.sequencer).await {
            Ok(receipt) => {
                Ok((Registered::Receipt { index: placement.index, receipt }, placement.already_there))
            }
            Err(NoReceipt::NotSignedYet(_)) => Ok((Registered::Later, placement.already_there)),
            Err(why) => Err(RegisterError::NoReceipt(why)),
        }
    }

    /// Translates a refusal of the sequencer, in the policy's words where it has them.
    async fn refused(
        &self,
        error: SubmitError,
        permit: &Permit,
        statement: &SignedStatement,
    ) -> RegisterError {
        match error {
            SubmitError::GuardTaken { key, index } => RegisterError::GuardTaken {
                refusal: Box::new(permit.refusal_for_guard(&key.0, index)),
                by: self.look_into(&key, index, statement).await,
                forks: equivocation::is_proven_by(&key),
            },
            SubmitError::OutsideWindow { at, .. } => match permit.refusal_at(at) {
                Some(refusal) => RegisterError::OutsideWindow(Box::new(refusal)),
                None => RegisterError::KeepsMoving,
            },
            SubmitError::LogFull { size, .. } => match permit.refusal_at_leaf(size.next_leaf()) {
                Some(refusal) => RegisterError::OutsideWindow(Box::new(refusal)),
                None => RegisterError::KeepsMoving,
            },
            SubmitError::NoCorrection(why) => {
                RegisterError::OutsideWindow(Box::new(permit.refusal_of_correction(why)))
            }
            SubmitError::Twin { index, digest } => self.twin(Found { index, digest }).await,
            SubmitError::QueueFull { retry_after } => {
                self.metrics.queue_rejected.inc();
                RegisterError::QueueFull { retry_after: retry_after.as_secs().max(1) }
            }
            SubmitError::InboxFull { issuer_only, retry_after } => {
                self.metrics.queue_rejected.inc();
                RegisterError::InboxFull { issuer_only, retry_after: retry_after.as_secs().max(1) }
            }
            SubmitError::NoPolicy => RegisterError::NoPolicy,
            SubmitError::Halted(Halt::Frozen) => RegisterError::Frozen,
            SubmitError::Halted(Halt::Damaged(why)) => StoreError::Damaged(why).into(),
            SubmitError::Halted(halt) => RegisterError::Halted(halt.to_string()),
            SubmitError::Stopping => RegisterError::Stopping,
            SubmitError::Store(error) => RegisterError::Store(error),
            SubmitError::PolicyMoved { .. } | SubmitError::RelyOnAbsent { .. } | SubmitError::Accepted => {
                RegisterError::KeepsMoving
            }
            error @ SubmitError::DigestMismatch { .. } => RegisterError::Internal(error.to_string()),
        }
    }

    /// Returns `true` if a report of the contradiction that refuses the statement is kept already: then anyone may have
    /// resubmitted the statement.
    async fn refused_before(&self, error: &SubmitError, statement: &SignedStatement) -> bool {
        let SubmitError::GuardTaken { key, index } = error else { return false };
        let (digest, bytes) = (statement.digest(), statement.bytes());
        let refused = equivocation::Refused { digest, statement: bytes, key, held_by: *index };
        equivocation::is_reported(&*self.store, &refused).await.unwrap_or(false)
    }

    async fn look_into(
        &self,
        key: &GuardKey,
        held_by: LeafIndex,
        statement: &SignedStatement,
    ) -> Option<EntryDigest> {
        let digest = statement.digest();
        let refused = equivocation::Refused { digest, statement: statement.bytes(), key, held_by };
        equivocation::look_into(&*self.store, &self.metrics, &refused).await
    }

    /// The receipt of a statement that is in the log already; `None` if it is not.
    async fn known(&self, statement: &SignedStatement) -> Result<Option<Registered>, RegisterError> {
        let digest = statement.digest();
        match self.find(digest).await.map_err(RegisterError::from)? {
            Some(found) if found.digest != digest => Err(self.twin(found).await),
            Some(found) => match self.receipts.fresh(found.index, &self.sequencer).await {
                Ok(receipt) => Ok(Some(Registered::Receipt { index: found.index, receipt })),
                Err(NoReceipt::NotSignedYet(_)) => Ok(Some(Registered::Later)),
                Err(why) => Err(RegisterError::NoReceipt(why)),
            },
            None => Ok(None),
        }
    }

    /// The refusal of a statement whose key leads to another digest: a registered twin, or an entry whose digest is
    /// damaged.
    pub async fn twin(&self, found: Found) -> RegisterError {
        match self.sound(found.index).await {
            Ok(()) => RegisterError::Twin(found.digest),
            Err(damaged) => damaged.into(),
        }
    }

    async fn sound(&self, index: LeafIndex) -> Result<(), StoreError> {
        if let Some(entry) = self.store.entry(index).await? {
            entry.verified()?;
        }
        Ok(())
    }

    /// Looks up an entry ID: its receipt, or the state of its registration.
    pub async fn resolve(&self, digest: EntryDigest) -> Result<Resolved, NoReceipt> {
        if let Some(index) = self.index_of(digest).await? {
            return self.receipt(index).await;
        }
        match self.store.progress(&digest).await? {
            Some(Progress::Pending) => Ok(Resolved::Pending),
            Some(Progress::Failed(why)) => Ok(Resolved::Failed(why)),
            Some(Progress::Registered(index)) => self.receipt(index).await,
            None => Ok(Resolved::Unknown),
        }
    }

    /// A fresh receipt of a leaf.
    pub async fn receipt(&self, index: LeafIndex) -> Result<Resolved, NoReceipt> {
        match self.receipts.fresh(index, &self.sequencer).await {
            Ok(receipt) => Ok(Resolved::Receipt(receipt)),
            Err(NoReceipt::NotSignedYet(_)) => Ok(Resolved::Pending),
            Err(why) => Err(why),
        }
    }

    /// The leaf of an entry ID; `None` for a twin of it.
    pub async fn index_of(&self, digest: EntryDigest) -> Result<Option<LeafIndex>, StoreError> {
        let Some(found) = self.find(digest).await? else { return Ok(None) };
        if found.digest == digest {
            return Ok(Some(found.index));
        }
        // Either its twin was found, or the stored entry is damaged, which must not pass for an answer.
        self.sound(found.index).await?;
        Ok(None)
    }

    async fn find(&self, digest: EntryDigest) -> Result<Option<Found>, StoreError> {
        Ok(self.store.find(&[digest]).await?.into_iter().next().flatten())
    }

    /// The largest size that this process has seen committed or published.
    pub fn committed_size(&self) -> TreeSize {
        let published = self.sequencer.published().map_or(TreeSize::new(0), |published| published.head.size);
        self.sequencer.status().borrow().size.max(published)
    }

    /// The number of readable leaves. A follower learns of commits later than the database, so it asks the database.
    pub async fn readable_size(&self) -> Result<TreeSize, StoreError> {
        let leads = matches!(self.sequencer.status().borrow().role, Role::Leading { .. });
        match leads {
            true => Ok(self.committed_size()),
            false => Ok(self.store.head().await?.size()),
        }
    }

    /// The URL of an entry's receipt, for `Location`.
    pub fn location(&self, digest: EntryDigest) -> String {
        format!("{}/entries/{digest}", self.identity.public_url)
    }
}

/// Returns `true` if a statement that failed with this error may still be in the log: an older policy admitted it, or
/// nothing can enter now.
fn may_be_known(error: &RegisterError) -> bool {
    use RegisterError::{Frozen, Halted, KeepsMoving, LowSpace, NoPolicy, NotAdmitted, OutsideWindow};
    matches!(
        error,
        NotAdmitted(_) | OutsideWindow(_) | Frozen | Halted(_) | LowSpace(_) | NoPolicy | KeepsMoving
    )
}

/// Returns `true` if registration failed because the signature does not cover the detached payload.
fn is_about_the_payload(error: &RegisterError) -> bool {
    matches!(error, RegisterError::NotAdmitted(refused) if does_not_fit(refused))
}

/// Returns `true` if the signature does not cover the detached payload, or the statement contains its payload already.
pub fn does_not_fit(refused: &NotAdmitted) -> bool {
    use registration::Untrusted::{PayloadTwice, Signature};
    matches!(refused, NotAdmitted::Untrusted(PayloadTwice | Signature(_)))
}

/// Returns `true` if a registration is not counted against its issuer: nothing new was registered, or the service
/// failed.
fn costs_nothing(outcome: &Result<(Registered, bool), RegisterError>) -> bool {
    match outcome {
        Ok((_, already_there)) => *already_there,
        Err(error) => matches!(error, RegisterError::Twin(_)) || is_our_fault(error),
    }
}

/// Returns `true` for errors after which the client may retry with the same statement.
fn is_our_fault(error: &RegisterError) -> bool {
    use RegisterError::{
        Frozen, Halted, InboxFull, Internal, KeepsMoving, LowSpace, NoPolicy, NoReceipt, NotAdmitted, Policy,
        QueueFull, Stopping, Store,
    };
    match error {
        NotAdmitted(why) => matches!(why, self::NotAdmitted::Undecided(_) | self::NotAdmitted::Store(_)),
        QueueFull { .. }
        | InboxFull { .. }
        | KeepsMoving
        | NoPolicy
        | Frozen
        | Halted(_)
        | LowSpace(_)
        | Stopping => true,
        Policy(_) | Store(_) | NoReceipt(_) | Internal(_) => true,
        RegisterError::GuardTaken { .. } | RegisterError::OutsideWindow(_) | RegisterError::Twin(_) => false,
    }
}

fn outcome_of(outcome: &Result<(Registered, bool), RegisterError>) -> Outcome {
    match outcome {
        Ok((_, true)) => Outcome::Duplicate,
        Ok((_, false)) => Outcome::Accepted,
        Err(RegisterError::NotAdmitted(NotAdmitted::Untrusted(_))) => Outcome::Signature,
        Err(
            RegisterError::NotAdmitted(NotAdmitted::OverQuota(_))
            | RegisterError::QueueFull { .. }
            | RegisterError::InboxFull { .. },
        ) => Outcome::Limit,
        Err(
            RegisterError::NotAdmitted(NotAdmitted::Refused(_))
            | RegisterError::GuardTaken { .. }
            | RegisterError::OutsideWindow(_)
            | RegisterError::Twin(_),
        ) => Outcome::Policy,
        Err(_) => Outcome::Error,
    }
}
