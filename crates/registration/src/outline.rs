//! What can be asked again about an admitted statement: of one whose payload is gone, all that its protected header
//! decides; of any other, what it claims, without checking its signature once more.
//!
//! A policy may let payloads go (`keep_payload = false`). The signature then has nothing to be checked with, and the
//! typed record cannot be read; but whose key it names, under which rule it falls, what that rule asks of headers and claims, and
//! when it may have been admitted stay as they were. An outline is no permit: it says what must be so, not that
//! the statement was to be admitted.

use scitt::{SignedStatement, X5Chain};
use serde_json::{Map, Value};

use crate::answers::Answers;
use crate::authenticate::{Beside, unsigned};
use crate::decide::{PolicyInForce, check_common, claimed_times, revision_guard};
use crate::decision::Bound;
use crate::facts::header_facts;
use crate::guard::Guard;
use crate::policy::{Outcome, TypeRule};
use crate::record::Record;
use crate::violation::Violation;

/// What must be so of a statement, by its header.
#[derive(Debug)]
pub struct Outline<'p> {
    rule: &'p TypeRule,
    facts: Map<String, Value>,
    bounds: Vec<Bound>,
}

impl PolicyInForce {
    /// What the header of an admitted statement decides, given the chain that was kept beside it.
    ///
    /// # Errors
    /// The first rule that its header breaks.
    pub fn outline(
        &self,
        statement: &SignedStatement,
        x5chain: Option<&X5Chain>,
    ) -> Result<Outline<'_>, Violation> {
        let beside = Beside { payload: None, x5chain };
        let stated = unsigned(statement, beside, self.policy()).map_err(|untrusted| untrusted.violation())?;
        let mut bounds = vec![stated.bound()];
        bounds.extend(claimed_times(&stated)?);
        let rule = self.type_rule(&stated)?;
        check_common(rule, &stated)?;
        Ok(Outline { rule, facts: header_facts(&stated).0, bounds })
    }

    /// The guards that an admitted statement claimed, derived again from its bytes; `None` where they do not tell: what
    /// is not all there, or was not admitted by this policy. No signature is checked, and nothing is admitted by it.
    pub fn claimed_again(&self, statement: &SignedStatement) -> Option<Vec<Guard>> {
        statement.payload()?;
        let stated = unsigned(statement, Beside::default(), self.policy()).ok()?;
        let record = Record::read(&stated).ok()?;
        match &record {
            Record::Erasure(erasure) => return Some(erasure.guards(&statement.digest()).to_vec()),
            Record::OperatorAction(action) => return Some(action.guards(&statement.digest()).to_vec()),
            Record::OperatorApproval(approval) => {
                let thumbprint = stated.key().thumbprint();
                return Some(approval.guards(&statement.digest(), &thumbprint).to_vec());
            }
            // Policies of old claimed no permanence.
            Record::Policy(policy) => return Some(vec![revision_guard(policy)]),
            _ => {}
        }
        let permit = self.decide(&stated, &record, &Answers::none()).into_permit().ok()?;
        Some(permit.guards().to_vec())
    }
}

impl Outline<'_> {
    /// The names of the facts that a header states.
    pub const FACTS: [&'static str; 6] = ["iss", "sub", "alg", "authenticated_by", "content_type", "iat"];

    /// What the header states of a fact.
    pub fn fact(&self, name: &str) -> Option<&Value> {
        self.facts.get(name)
    }

    /// Whether this may be the rule that admitted it: its type's own, or a condition of it that admits.
    pub fn may_be_admitted_by(&self, rule: &str) -> bool {
        let mut conditions = self.rule.conditions.iter();
        self.rule.name == rule
            || conditions.any(|condition| condition.name == rule && condition.then == Outcome::Admit)
    }

    /// Whether it may have been admitted at this time.
    pub fn may_be_admitted_at(&self, at: u64) -> bool {
        self.bounds.iter().all(|bound| bound.window.contains(at))
    }
}
