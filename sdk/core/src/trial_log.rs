//! A log in memory, whose entries answer the questions of its policy.

use merkle::LeafIndex;
use registration::{
    Answers, NotPermitted, Permit, Policy, PolicyInForce, Questions, Record, Refusal, SideData, Violation,
};
use scitt::SignedStatement;

/// A log whose entry 0 is its policy. The policy stays in force: policies and operators' actions among the entries take up
/// their leaves and have no effect.
pub struct TrialLog {
    policy: PolicyInForce,
    /// The permits of the entries from leaf 1 on.
    permits: Vec<Permit>,
    /// Time in Unix seconds; `None` decides no rules about time.
    now: Option<u64>,
}

/// A decision of a [`TrialLog`].
pub struct Trial {
    /// The permit, or why there is none.
    pub decided: Result<Permit, NotPermitted>,
    /// Whether the policy has questions about other entries, so that a log with others may decide otherwise.
    pub asks_the_log: bool,
}

impl TrialLog {
    /// A log that has only its policy.
    pub fn new(policy: Policy, now: Option<u64>) -> Self {
        Self { policy: PolicyInForce::new(policy, LeafIndex::new(0)), permits: Vec::new(), now }
    }

    /// Adds a statement.
    ///
    /// # Errors
    /// The rule that the statement breaks.
    pub fn register(&mut self, statement: &SignedStatement) -> Result<(), NotPermitted> {
        let permit = self.decide(statement, None).decided?;
        self.permits.push(permit);
        Ok(())
    }

    /// Decides about a statement with its detached payload.
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
        for (leaf, permit) in self.leaves() {
            if asked.digests.contains(&permit.statement()) {
                answers.put_entry(permit.statement(), leaf);
            }
            for guard in asked.guards.iter().filter(|guard| permit.guards().contains(guard)) {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        answers
    }

    /// Returns why a permit cannot be used, as a sequencer finds out: the time, the end of the log, or a claim that another
    /// entry makes.
    fn conflict(&self, permit: &Permit) -> Option<Refusal> {
        let next = LeafIndex::new(self.permits.len() as u64 + 1);
        let refusal =
            self.now.and_then(|now| permit.refusal_at(now)).or_else(|| permit.refusal_at_leaf(next));
        refusal.or_else(|| {
            permit.guards().iter().find_map(|guard| {
                let (leaf, _) = self.leaves().find(|(_, earlier)| earlier.guards().contains(guard))?;
                Some(permit.refusal_for_guard(guard.as_bytes(), leaf))
            })
        })
    }

    fn leaves(&self) -> impl Iterator<Item = (LeafIndex, &Permit)> {
        (1..).map(LeafIndex::new).zip(&self.permits)
    }
}
