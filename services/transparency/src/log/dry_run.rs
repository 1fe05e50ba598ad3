//! The dry run of a registration: the decision about a statement, without registering it.
//!
//! The steps are those of a registration up to the sequencer. What the sequencer would find (a claim taken by an entry,
//! a time outside the statement's validity, another encoding of a registered signature) is looked up instead. While the
//! log registers nothing, a new statement is refused as its registration would be. Issuers' quotas are not charged: a
//! quota counts registrations.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use registration::{Guard, Permit, Place, RuleName, SideData, TimeWindow, Violation, entry_facts};
use scitt::SignedStatement;
use sequencer::Role;
use serde_json::{Map, Value};
use store::GuardKey;

use crate::log::admission::{self, NotAdmitted};
use crate::log::erasures::ErasureHold;
use crate::log::policies::PolicyEntry;
use crate::log::registration_outcome::{RegisterError, does_not_fit};
use crate::log::state::Log;
use crate::time::now;

/// The outcome of a dry run.
#[derive(Debug)]
pub struct DryRun {
    /// The policy that decided.
    pub policy: std::sync::Arc<PolicyEntry>,
    /// The leaf that contains the statement already: registering it again would return its receipt.
    pub registered_at: Option<LeafIndex>,
    /// The reason for the refusal; `None` if the statement would be admitted.
    pub violation: Option<Violation>,
    /// The statement's guards that an earlier entry has taken, with that entry's leaf.
    pub taken: Vec<(Guard, LeafIndex)>,
    /// The permit, if the policy's rules came to one.
    pub permitted: Option<Permitted>,
}

/// The parts of a permit that are shown to the caller.
#[derive(Debug)]
pub struct Permitted {
    /// The name of the admitting rule.
    pub rule: String,
    /// The times at which the statement may enter.
    pub valid: TimeWindow,
    /// All facts of the entry that it would be.
    pub facts: Map<String, Value>,
}

impl DryRun {
    /// Returns `true` if registering the statement now would return a receipt.
    pub fn would_admit(&self) -> bool {
        self.violation.is_none()
    }
}

impl Log {
    /// Decides about a statement without registering it.
    pub async fn dry_run(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
    ) -> Result<DryRun, RegisterError> {
        let policy = self.policies.current().ok_or(RegisterError::NoPolicy)?;
        let mut run =
            DryRun { policy, registered_at: None, violation: None, taken: Vec::new(), permitted: None };
        match (self.find_registered(statement, &mut run).await?, payload) {
            (false, _) => {
                self.must_accept()?;
                self.decide(statement, payload, &mut run).await?;
            }
            (true, Some(payload)) => self.compare(statement, payload, &mut run).await,
            (true, None) => {}
        }
        Ok(run)
    }

    async fn decide(
        &self,
        statement: &SignedStatement,
        payload: Option<&Bytes>,
        run: &mut DryRun,
    ) -> Result<(), RegisterError> {
        let (side_data, policy) =
            (SideData { payload: payload.map(|bytes| &bytes[..]), x5chain: None }, run.policy.clone());
        let decided =
            admission::admit(statement, side_data, &policy.in_force, &*self.store, &self.metrics, None);
        match decided.await {
            Ok(admitted) => {
                self.must_sequence()?;
                return self.at_the_log(statement, &admitted.permit, run).await;
            }
            Err(NotAdmitted::Untrusted(untrusted)) => run.violation = Some(untrusted.violation()),
            Err(NotAdmitted::Refused(refusal)) => run.violation = Some(refusal.violation),
            Err(NotAdmitted::Held(hold)) => run.violation = Some(held(&hold)),
            Err(NotAdmitted::NothingToHold(entry)) => run.violation = Some(nothing_to_hold(entry)),
            Err(undecided) => return Err(RegisterError::NotAdmitted(undecided)),
        }
        Ok(())
    }

    /// Refuses what the sequencer would refuse now whatever the statement is: the log is frozen or halted.
    fn must_sequence(&self) -> Result<(), RegisterError> {
        let status = self.sequencer.status();
        let status = status.borrow();
        match (&status.role, status.obstacle()) {
            (Role::Stopped, _) => Err(RegisterError::Stopping),
            (_, Some(halt)) => Err(halt.clone().into()),
            (_, None) => Ok(()),
        }
    }

    /// Refuses a detached payload that the signature of a registered statement does not cover.
    async fn compare(&self, statement: &SignedStatement, payload: &Bytes, run: &mut DryRun) {
        let (side_data, policy) = (SideData { payload: Some(payload), x5chain: None }, run.policy.clone());
        let decided =
            admission::admit(statement, side_data, &policy.in_force, &*self.store, &self.metrics, None);
        if let Err(refused) = decided.await
            && does_not_fit(&refused)
            && let NotAdmitted::Untrusted(untrusted) = refused
        {
            run.violation = Some(untrusted.violation());
        }
    }

    /// Checks a permit against the log as the sequencer would: taken guards, then the time.
    async fn at_the_log(
        &self,
        statement: &SignedStatement,
        permit: &Permit,
        run: &mut DryRun,
    ) -> Result<(), RegisterError> {
        let keys: Vec<GuardKey> =
            permit.guards().iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        let held = if keys.is_empty() { Vec::new() } else { self.store.guards(&keys).await? };
        let held = permit.guards().iter().zip(held);
        run.taken = held.filter_map(|(guard, leaf)| Some((guard.clone(), leaf?))).collect();
        let taken = run.taken.first().map(|(guard, leaf)| permit.refusal_for_guard(guard.as_bytes(), *leaf));
        let next = self.readable_size().await?.next_leaf();
        // The clock is an estimate of the log's time, which the batch of the statement would set.
        let refusal = taken.or_else(|| permit.refusal_at(now())).or_else(|| permit.refusal_at_leaf(next));
        run.violation = refusal.map(|refusal| refusal.violation);
        run.permitted = Some(Permitted {
            rule: permit.rule().to_string(),
            valid: permit.valid(),
            facts: entry_facts(statement, permit.facts()),
        });
        Ok(())
    }

    /// Looks up the statement in the log. A registered statement gets its receipt under any later policy, so it is not
    /// decided again; a twin (another encoding of its signature) is a violation.
    async fn find_registered(
        &self,
        statement: &SignedStatement,
        run: &mut DryRun,
    ) -> Result<bool, RegisterError> {
        let digest = statement.digest();
        let found = self.store.find(&[digest]).await?.into_iter().next().flatten();
        match &found {
            Some(found) if found.digest == digest => run.registered_at = Some(found.index),
            Some(found) => match self.twin(*found).await {
                RegisterError::Twin(registered) => run.violation = Some(twin(registered)),
                damaged => return Err(damaged),
            },
            None => {}
        }
        Ok(found.is_some())
    }
}

fn twin(registered: EntryDigest) -> Violation {
    Violation {
        rule: RuleName::fixed("signature-twin"),
        place: Place::Signature,
        detail: format!("another encoding of the same signature is registered, as entry {registered}"),
    }
}

fn held(hold: &ErasureHold) -> Violation {
    Violation {
        rule: RuleName::fixed("entry-held"),
        place: Place::Statement,
        detail: format!("entry {} is on hold for the case {}: it cannot be erased", hold.entry, hold.case),
    }
}

fn nothing_to_hold(entry: LeafIndex) -> Violation {
    Violation {
        rule: RuleName::fixed("nothing-to-hold"),
        place: Place::payload("/entry"),
        detail: format!("entry {entry} was erased: nothing of it can be held"),
    }
}
