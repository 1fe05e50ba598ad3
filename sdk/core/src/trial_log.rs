//! A log in memory, whose entries answer the questions of its policy.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};
use registration::{
    Answers, Guard, NotPermitted, Permit, Policy, PolicyInForce, Questions, Record, Refusal, SideData,
    Violation,
};
use scitt::SignedStatement;

/// A log whose entry 0 is its policy. The policy stays in force: policies and operators' actions among the entries take up
/// their leaves and have no effect.
pub struct TrialLog {
    policy: PolicyInForce,
    /// The leaves of the statements.
    entries: HashMap<EntryDigest, LeafIndex>,
    /// The leaves of the entries that made a claim.
    guards: HashMap<Guard, LeafIndex>,
    /// The leaf of the next entry.
    next: LeafIndex,
    /// Time in Unix seconds; `None` decides no rules about time.
    now: Option<u64>,
}

/// A decision of a [`TrialLog`].
pub struct Trial {
    /// The permit, or why there is none.
    pub decided: Result<Permit, NotPermitted>,
    /// Whether the decision looked other entries up. Even if it did not, a log refuses a claim that another entry makes.
    pub asks_the_log: bool,
}

impl TrialLog {
    /// A log that has only its policy.
    pub fn new(policy: Policy, now: Option<u64>) -> Self {
        let policy = PolicyInForce::new(policy, LeafIndex::new(0));
        Self { policy, entries: HashMap::new(), guards: HashMap::new(), next: LeafIndex::new(1), now }
    }

    /// Returns the leaf that has a statement.
    pub fn leaf_of(&self, statement: &SignedStatement) -> Option<LeafIndex> {
        self.entries.get(&statement.digest()).copied()
    }

    /// Adds a statement with its detached payload. One that the log has already adds nothing.
    ///
    /// # Errors
    /// The rule that the statement breaks.
    pub fn register(
        &mut self,
        statement: &SignedStatement,
        payload: Option<&[u8]>,
    ) -> Result<(), NotPermitted> {
        if self.leaf_of(statement).is_some() {
            return Ok(());
        }
        let permit = self.decide(statement, payload).decided?;
        self.entries.insert(permit.statement(), self.next);
        self.guards.extend(permit.guards().iter().cloned().map(|guard| (guard, self.next)));
        self.next = LeafIndex::new(self.next.get() + 1);
        Ok(())
    }

    /// Decides about a statement that the log does not have, with its detached payload.
    pub fn decide(&self, statement: &SignedStatement, payload: Option<&[u8]>) -> Trial {
        let read = self.policy.authenticate(statement, SideData { payload, x5chain: None });
        let read = read.map_err(|untrusted| untrusted.violation());
        let read = read.and_then(|authenticated| Ok((Record::read(&authenticated)?, authenticated)));
        let (record, authenticated) = match read {
            Ok(read) => read,
            Err(violation) => return Trial { decided: Err(self.refused(violation)), asks_the_log: false },
        };
        let asked = self.policy.questions(&authenticated, &record);
        let decision = self.policy.decide(&authenticated, &record, &self.answers(&asked));
        let decided = decision.into_permit().and_then(|permit| match self.conflict(&permit) {
            Some(refusal) => Err(NotPermitted::Refused(refusal)),
            None => Ok(permit),
        });
        Trial { decided, asks_the_log: !asked.is_empty() }
    }

    fn refused(&self, violation: Violation) -> NotPermitted {
        NotPermitted::Refused(self.policy.refuse(violation))
    }

    fn answers(&self, asked: &Questions) -> Answers {
        let mut answers = Answers::none();
        for digest in &asked.digests {
            if let Some(leaf) = self.entries.get(digest) {
                answers.put_entry(*digest, *leaf);
            }
        }
        for guard in &asked.guards {
            if let Some(leaf) = self.guards.get(guard) {
                answers.put_guard(guard.clone(), *leaf);
            }
        }
        answers
    }

    /// Returns why a permit cannot be used, as a sequencer finds out: the time, the end of the log, or a claim that another
    /// entry makes.
    fn conflict(&self, permit: &Permit) -> Option<Refusal> {
        let refusal =
            self.now.and_then(|now| permit.refusal_at(now)).or_else(|| permit.refusal_at_leaf(self.next));
        refusal.or_else(|| {
            let taken =
                |guard: &Guard| Some(permit.refusal_for_guard(guard.as_bytes(), *self.guards.get(guard)?));
            permit.guards().iter().find_map(taken)
        })
    }
}
