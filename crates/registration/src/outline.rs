//! Re-checks of admitted statements for audits: the decisions of the protected header of a statement whose payload was
//! not kept, and the claims of any other statement without a second signature check.
//!
//! A policy may discard payloads (`keep_payload = false`). The signature can then no longer be verified, nor the typed
//! record parsed. The issuer's key, the rule of the content type, its requirements on headers and claims, and the
//! interval of admission can still be checked. An [`Outline`] is not a permit: it states necessary conditions for the
//! admission, not sufficient ones.

use merkle::{LeafIndex, TreeSize};
use scitt::{SignedStatement, X5Chain};

use crate::answers::Answers;
use crate::authenticate::{SideData, unsigned};
use crate::decide::{PolicyInForce, check_common, claimed_times, revision_guard};
use crate::guard::Guard;
use crate::guard::permanent_guard;
use crate::policy::{Outcome, TypeRule};
use crate::record::Record;
use crate::time_window::Bound;
use crate::violation::Violation;

/// Necessary conditions for the admission of a statement, derived from its header.
#[derive(Debug)]
pub struct Outline<'p> {
    rule: &'p TypeRule,
    bounds: Vec<Bound>,
    largest_tree: Option<TreeSize>,
}

impl PolicyInForce {
    /// Checks the header of an admitted statement; `x5chain` is the certificate chain stored with the entry.
    ///
    /// # Errors
    /// The first rule that the header breaks.
    pub fn outline(
        &self,
        statement: &SignedStatement,
        x5chain: Option<&X5Chain>,
    ) -> Result<Outline<'_>, Violation> {
        let side_data = SideData { payload: None, x5chain };
        let stated =
            unsigned(statement, side_data, self.policy()).map_err(|untrusted| untrusted.violation())?;
        let mut bounds = vec![stated.bound()];
        bounds.extend(claimed_times(&stated)?);
        let rule = self.type_rule(&stated)?;
        check_common(rule, &stated)?;
        let log_end = &self.policy().contents().log_end;
        bounds.extend(log_end.bound());
        Ok(Outline { rule, bounds, largest_tree: log_end.largest_tree() })
    }

    /// Derives the guards that an admitted statement claimed from its bytes. Returns `None` if its payload is detached
    /// or this policy does not admit it. Signatures are not checked, and the result admits nothing.
    pub fn claimed_again(&self, statement: &SignedStatement) -> Option<Vec<Guard>> {
        statement.payload()?;
        let stated = unsigned(statement, SideData::default(), self.policy()).ok()?;
        let record = Record::read(&stated).ok()?;
        match &record {
            Record::Erasure(erasure) => return Some(erasure.guards(&statement.digest()).to_vec()),
            Record::OperatorAction(action) => return Some(action.guards(&statement.digest()).to_vec()),
            Record::OperatorApproval(approval) => {
                let thumbprint = stated.key().thumbprint();
                return Some(approval.guards(&statement.digest(), &thumbprint).to_vec());
            }
            Record::Policy(policy) => {
                return Some(vec![revision_guard(policy), permanent_guard(&statement.digest())]);
            }
            _ => {}
        }
        let permit = self.decide(&stated, &record, &Answers::none()).into_permit().ok()?;
        Some(permit.guards().to_vec())
    }
}

impl Outline<'_> {
    /// Returns whether this rule can have admitted the statement: the rule of its content type, or one of its admitting
    /// conditions.
    pub fn may_be_admitted_by(&self, rule: &str) -> bool {
        let mut conditions = self.rule.conditions.iter();
        self.rule.name == rule
            || conditions.any(|condition| condition.name == rule && condition.then == Outcome::Admit)
    }

    /// Returns whether the statement can have been admitted at this time, in Unix seconds.
    pub fn may_be_admitted_at(&self, at: u64) -> bool {
        self.bounds.iter().all(|bound| bound.window.contains(at))
    }

    /// Whether it may have been admitted at this leaf.
    pub fn may_be_admitted_at_leaf(&self, leaf: LeafIndex) -> bool {
        self.largest_tree.is_none_or(|largest| largest.holds(leaf))
    }
}
