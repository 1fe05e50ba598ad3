//! Registration: find a duplicate, decide and charge the issuer, submit, and what follows a commit.

use std::time::Instant;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use registration::operator::Effect;
use registration::{GuardKind, Permit, SideData};
use scitt::SignedStatement;
use sequencer::{Placement, Remedy, Role, SubmitError};
use store::{Found, GuardKey, Progress};
use tracing::Instrument;

use crate::limits::DECISIONS;
use crate::log::admission::{self, Admitted};
use crate::log::registration_outcome::{
    RegisterError, Registered, Registration, costs_nothing, is_about_the_payload, may_be_known, outcome_of,
};
use crate::log::state::Log;
use crate::log::turns::Turn;
use crate::log::{equivocation, failed_write};
use crate::metrics::latency::Stage;
use crate::proofs::receipts::ReceiptUnavailable;
use crate::quota::issuer_quota::IssuerCharge;
use crate::spans;

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
        self.counted(Instant::now(), self.register_once(statement, payload, None).await)
    }

    /// Registers a statement like [`register`](Self::register), and submits it to the sequencer in its turn.
    pub async fn register_in_turn(
        &self,
        statement: &SignedStatement,
        turn: Turn,
    ) -> Result<Registered, RegisterError> {
        self.counted(Instant::now(), self.register_once(statement, None, Some(turn)).await)
    }

    fn counted(
        &self,
        begun: Instant,
        outcome: Result<Registration, RegisterError>,
    ) -> Result<Registered, RegisterError> {
        self.metrics.registration(outcome_of(&outcome));
        failed_write::learn(&self.failed_write, begun, &outcome);
        outcome.map(|registration| registration.registered)
    }

    /// Takes the steps of a registration in their order.
    async fn register_once(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        turn: Option<Turn>,
    ) -> Result<Registration, RegisterError> {
        let mut issuer_charge = self.access.issuer_charge();
        if let Some(duplicate) = self.find_duplicate(statement, payload, &issuer_charge).await? {
            return Ok(duplicate);
        }
        self.waive_pending(statement, &mut issuer_charge).await?;
        let outcome = self.decide_and_submit(statement, payload, &mut issuer_charge, turn).await;
        let outcome = self.recognize_duplicate(outcome, statement, payload).await;
        if costs_nothing(&outcome) {
            issuer_charge.refund().await;
        }
        outcome
    }

    /// Finds a statement that is in the log already: one that was registered lately, from memory; an older one where the
    /// sequencer's own check comes too late. That look-up spares a known statement the way through a follower, a refusal
    /// under a newer policy, and a charge, since resubmitting a registered statement is not charged to the issuer's quota.
    async fn find_duplicate(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        issuer_charge: &IssuerCharge,
    ) -> Result<Option<Registration>, RegisterError> {
        if payload.is_some() {
            return Ok(None);
        }
        if let Some(leaf) = self.recent.leaf(statement.digest()) {
            return self.registered_before(leaf).await.map(Some);
        }
        let leads = matches!(self.sequencer.status().borrow().role, Role::Leading { .. });
        if leads && !issuer_charge.counts() {
            return Ok(None);
        }
        self.duplicate(statement).await
    }

    /// Waives the charge of a statement that was accepted before and is not in the log yet.
    async fn waive_pending(
        &self,
        statement: &SignedStatement,
        issuer_charge: &mut IssuerCharge,
    ) -> Result<(), RegisterError> {
        if !issuer_charge.counts() {
            return Ok(());
        }
        let progress = self.store.progress(&statement.digest()).await?;
        if matches!(progress, Some(Progress::Pending)) {
            issuer_charge.waive();
        }
        Ok(())
    }

    /// Decides under the policy in force and submits, again while the log changes under the decision.
    async fn decide_and_submit(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        issuer_charge: &mut IssuerCharge,
        mut turn: Option<Turn>,
    ) -> Result<Registration, RegisterError> {
        self.must_accept()?;
        for _ in 0..DECISIONS {
            let Admitted { submission, issuer, permit, terms } =
                self.decide_and_charge(statement, payload, issuer_charge).await?;
            let started = Instant::now();
            let submitted = self.sequencer.submit_for(&issuer, submission);
            let submitted = submitted.instrument(spans::stage(Stage::Queue));
            let outcome = match turn.take() {
                Some(turn) => turn.take(submitted).await,
                None => submitted.await,
            };
            self.metrics.stage(Stage::Queue, started.elapsed());
            match outcome {
                Ok(placement) => {
                    self.recent.insert(statement.digest(), placement.index);
                    // Without a path, the entry may be there by another decision.
                    if !placement.already_there && placement.path.is_some() {
                        self.decided.put(placement.index, terms);
                    }
                    self.follow_commit(&permit, placement.index).await?;
                    return self.with_receipt(placement).await;
                }
                Err(SubmitError::Accepted) => {
                    return Ok(Registration { registered: Registered::Later, is_duplicate: false });
                }
                Err(SubmitError::PolicyMoved { policy }) => {
                    self.policies.follow(policy).await.map_err(RegisterError::Policy)?;
                }
                Err(SubmitError::RelyOnAbsent { .. }) => {}
                Err(error) => {
                    if issuer_charge.is_charged() && self.refused_before(&error, statement).await {
                        issuer_charge.refund().await;
                    }
                    return Err(self.refused(error, &permit, statement).await);
                }
            }
        }
        Err(RegisterError::KeepsMoving)
    }

    /// Refuses every registration while the database is not durable or the disk is almost full.
    pub(super) fn must_accept(&self) -> Result<(), RegisterError> {
        if let Some(obstacle) = self.obstacle.load_full() {
            // The maintenance checks it again, and continues once it is gone.
            return Err(RegisterError::Halted { why: obstacle.to_string(), remedy: Remedy::Retry });
        }
        self.space.low().map_or(Ok(()), |why| Err(RegisterError::LowSpace(why)))
    }

    /// Decides under the policy in force. The issuer is charged once its signature is verified.
    async fn decide_and_charge(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        issuer_charge: &mut IssuerCharge,
    ) -> Result<Admitted, RegisterError> {
        let current = self.policies.current().ok_or(RegisterError::NoPolicy)?;
        let side_data = SideData { payload: payload.map(|bytes| &bytes[..]), x5chain: None };
        let (store, metrics) = (&*self.store, &self.metrics);
        let admitted =
            admission::admit(statement, side_data, &current.in_force, store, metrics, Some(issuer_charge));
        admitted.await.map_err(RegisterError::NotAdmitted)
    }

    /// Starts what a committed statement asks for: the deletion of erased or released bytes, or a new policy.
    async fn follow_commit(&self, permit: &Permit, index: LeafIndex) -> Result<(), RegisterError> {
        let erases = permit.guards().iter().any(|guard| guard.kind() == GuardKind::ErasureSequence);
        if erases || matches!(permit.effect(), Some(Effect::Release { .. })) {
            self.erasing.look();
        }
        // A client that gets the receipt of a policy must find the policy in force.
        if permit.successor().is_some() {
            self.policies.follow(index).await.map_err(RegisterError::Policy)?;
        }
        Ok(())
    }

    async fn with_receipt(&self, placement: Placement) -> Result<Registration, RegisterError> {
        let registered = match self.receipts.placed(&placement, &self.sequencer).await {
            Ok(receipt) => Registered::Receipt { index: placement.index, receipt },
            Err(ReceiptUnavailable::NotSignedYet(_)) => Registered::Later,
            Err(why) => return Err(RegisterError::NoReceipt(why)),
        };
        Ok(Registration { registered, is_duplicate: placement.already_there })
    }

    /// Replaces a failure by the success of an earlier registration, if the statement is in the log all the same. A
    /// detached payload that does not fit stays a failure.
    async fn recognize_duplicate(
        &self,
        outcome: Result<Registration, RegisterError>,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
    ) -> Result<Registration, RegisterError> {
        match outcome {
            Err(error) if payload.is_some() && is_about_the_payload(&error) => Err(error),
            Err(error) if may_be_known(&error) => self.duplicate(statement).await?.ok_or(error),
            outcome => outcome,
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
                self.metrics.batches.queue_rejected.inc();
                RegisterError::QueueFull { retry_after: retry_after.as_secs().max(1) }
            }
            SubmitError::InboxFull { issuer_only, retry_after } => {
                self.metrics.batches.queue_rejected.inc();
                RegisterError::InboxFull { issuer_only, retry_after: retry_after.as_secs().max(1) }
            }
            SubmitError::NoPolicy => RegisterError::NoPolicy,
            SubmitError::Halted(halt) => halt.into(),
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
        let refused = equivocation::RefusedStatement { digest, statement: bytes, key, held_by: *index };
        equivocation::is_reported(&*self.store, &refused).await.unwrap_or(false)
    }

    async fn look_into(
        &self,
        key: &GuardKey,
        held_by: LeafIndex,
        statement: &SignedStatement,
    ) -> Option<EntryDigest> {
        let digest = statement.digest();
        let refused = equivocation::RefusedStatement { digest, statement: statement.bytes(), key, held_by };
        equivocation::look_into(&*self.store, &self.metrics, &refused).await
    }

    /// The earlier registration of a statement that is in the log already; `None` if it is not.
    async fn duplicate(&self, statement: &SignedStatement) -> Result<Option<Registration>, RegisterError> {
        let digest = statement.digest();
        let Some(found) = self.find(digest).await? else { return Ok(None) };
        if found.digest != digest {
            return Err(self.twin(found).await);
        }
        self.recent.insert(digest, found.index);
        self.registered_before(found.index).await.map(Some)
    }

    /// The registration, with a fresh receipt, of a statement that is in the log already.
    async fn registered_before(&self, index: LeafIndex) -> Result<Registration, RegisterError> {
        let registered = match self.receipts.fresh(index, &self.sequencer).await {
            Ok(receipt) => Registered::Receipt { index, receipt },
            Err(ReceiptUnavailable::NotSignedYet(_)) => Registered::Later,
            Err(why) => return Err(RegisterError::NoReceipt(why)),
        };
        Ok(Registration { registered, is_duplicate: true })
    }

    /// The refusal of a statement whose key leads to another digest: a registered twin, or an entry whose digest is
    /// damaged.
    pub async fn twin(&self, found: Found) -> RegisterError {
        match self.sound(found.index).await {
            Ok(()) => RegisterError::Twin(found.digest),
            Err(damaged) => damaged.into(),
        }
    }
}
