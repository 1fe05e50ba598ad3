//! A running log, as the routes use it: register, resolve, read.

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

/// Who the log is, for ever.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name in checkpoints; the `sub` of receipts.
    pub origin: String,
    /// The `iss` of receipts.
    pub iss: String,
    /// Where clients reach it.
    pub public_url: String,
    /// The key of its receipts: base64url of the RFC 9679 thumbprint.
    pub receipt_kid: String,
    /// How its receipts are signed.
    pub receipt_algorithm: &'static str,
    /// The key of its checkpoints, as a C2SP verifier key.
    pub checkpoint_key: String,
}

/// All that handlers need of a log.
pub struct Log {
    /// Who it is.
    pub identity: Identity,
    /// Where it is kept.
    pub store: Arc<dyn LogStore>,
    /// Who orders it.
    pub sequencer: Handle,
    /// What is admitted.
    pub policies: Arc<Policies>,
    /// Who makes receipts.
    pub receipts: Receipts,
    /// The keys that verify them.
    pub keys: ArcSwap<PublishedKeys>,
    /// The keys that sign its heads.
    pub signer: Arc<LogSigner>,
    /// Why nothing may be registered, found after the start.
    pub obstacle: ArcSwapOption<String>,
    /// What the check of the storage found.
    pub fsck: Standing,
    /// Whether there is space to register anything.
    pub space: FreeSpace,
    /// Who cosigns its checkpoints.
    pub witnessing: Arc<Witnessing>,
    /// Wakes the task that erases.
    pub erasing: Erasing,
    /// Issuer quotas.
    pub doors: Arc<Doorkeeper>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// A statement that is in the log, or durably on its way.
#[derive(Debug)]
pub enum Registered {
    /// In the log, with a receipt.
    Receipt {
        /// Its leaf.
        index: LeafIndex,
        /// The receipt.
        receipt: Bytes,
    },
    /// Accepted; the receipt comes later.
    Later,
}

/// Why a statement was not registered.
#[derive(Debug)]
pub enum RegisterError {
    /// Not admitted.
    NotAdmitted(NotAdmitted),
    /// Something unique that it claims is taken.
    GuardTaken {
        /// The rule that broke.
        refusal: Box<registration::Refusal>,
        /// By which entry.
        by: Option<EntryDigest>,
        /// Whether it is a place in a chain: then the issuer has signed two things of which one at most is so.
        forks: bool,
    },
    /// The log's time is not one at which it may enter, or the log has no place for it.
    OutsideWindow(Box<registration::Refusal>),
    /// Its other encoding is registered.
    Twin(EntryDigest),
    /// Too much waits.
    QueueFull {
        /// Seconds.
        retry_after: u64,
    },
    /// The inbox has no room for it.
    InboxFull {
        /// Whether it has room for other issuers.
        issuer_only: bool,
        /// Seconds.
        retry_after: u64,
    },
    /// The log kept moving while it was decided.
    KeepsMoving,
    /// The log has no policy yet.
    NoPolicy,
    /// The log is at its end.
    Frozen,
    /// Sequencing stopped.
    Halted(String),
    /// The process is ending.
    Stopping,
    /// The policy in force cannot be read.
    Policy(PolicyUnreadable),
    /// The disk is almost full.
    LowSpace(Arc<String>),
    /// The database did not do its part.
    Store(Arc<StoreError>),
    /// It is in the log, and its receipt cannot be made now.
    NoReceipt(NoReceipt),
    /// A fault of ours.
    Internal(String),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// Where an entry ID stands.
#[derive(Debug)]
pub enum Resolved {
    /// In the log.
    Receipt(Bytes),
    /// On its way.
    Pending,
    /// Refused after it was accepted.
    Failed(String),
    /// Not known.
    Unknown,
}

impl Log {
    /// Puts a statement in the log, or says why not. The same statement is one entry, however often.
    ///
    /// `payload` is what came beside it. It is held against the signature also where the statement is known: who mixed up
    /// two files hears of it.
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
        // The sequencer finds duplicates itself; a look-up here is for those whose statement would
        // otherwise take the long way, be refused though it is in the log, or be charged to its issuer:
        // whoever hands in again what is public does so at nobody's cost.
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

    /// Whether a statement was accepted before, and waits for its place.
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
                    // Whoever is told that a policy is registered finds it in force.
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

    /// What the sequencer refused, in the policy's words where it has them.
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

    /// Whether the contradiction that refuses a statement is known already: anyone may hand it in again.
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

    /// The receipt of a statement that is in the log already.
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

    /// The refusal of a statement whose key leads to another digest: a registered twin, or an entry whose digest is damaged.
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

    /// What is known of an entry ID.
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

    /// The leaf of an entry ID; a twin is not that entry.
    pub async fn index_of(&self, digest: EntryDigest) -> Result<Option<LeafIndex>, StoreError> {
        let Some(found) = self.find(digest).await? else { return Ok(None) };
        if found.digest == digest {
            return Ok(Some(found.index));
        }
        // Its twin is asked for, or what is stored of it is damaged, which must not pass for an answer.
        self.sound(found.index).await?;
        Ok(None)
    }

    async fn find(&self, digest: EntryDigest) -> Result<Option<Found>, StoreError> {
        Ok(self.store.find(&[digest]).await?.into_iter().next().flatten())
    }

    /// What this process has seen committed or published.
    pub fn committed_size(&self) -> TreeSize {
        let published = self.sequencer.published().map_or(TreeSize::new(0), |published| published.head.size);
        self.sequencer.status().borrow().size.max(published)
    }

    /// Leaves that can be read. A process that does not lead hears of commits later than the database does.
    pub async fn readable_size(&self) -> Result<TreeSize, StoreError> {
        let leads = matches!(self.sequencer.status().borrow().role, Role::Leading { .. });
        match leads {
            true => Ok(self.committed_size()),
            false => Ok(self.store.head().await?.size()),
        }
    }

    /// Where an entry's receipt is.
    pub fn location(&self, digest: EntryDigest) -> String {
        format!("{}/entries/{digest}", self.identity.public_url)
    }
}

/// Whether a statement that failed so may be in the log all the same: it was admitted under an
/// older policy, or nothing can enter now.
fn may_be_known(error: &RegisterError) -> bool {
    use RegisterError::{Frozen, Halted, KeepsMoving, LowSpace, NoPolicy, NotAdmitted, OutsideWindow};
    matches!(
        error,
        NotAdmitted(_) | OutsideWindow(_) | Frozen | Halted(_) | LowSpace(_) | NoPolicy | KeepsMoving
    )
}

/// Whether a statement failed because its signature does not cover what came along.
fn is_about_the_payload(error: &RegisterError) -> bool {
    matches!(error, RegisterError::NotAdmitted(refused) if does_not_fit(refused))
}

/// Whether the signature does not cover what came along, or there was nothing to come along.
pub fn does_not_fit(refused: &NotAdmitted) -> bool {
    use registration::Untrusted::{PayloadTwice, Signature};
    matches!(refused, NotAdmitted::Untrusted(PayloadTwice | Signature(_)))
}

/// Whether a registration is not counted against its issuer: nothing new came of it, or we failed.
fn costs_nothing(outcome: &Result<(Registered, bool), RegisterError>) -> bool {
    match outcome {
        Ok((_, already_there)) => *already_there,
        Err(error) => matches!(error, RegisterError::Twin(_)) || is_our_fault(error),
    }
}

/// Whether the client is told to come again with the same statement.
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
