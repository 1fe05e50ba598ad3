//! Re-checks of admitted statements for audits: the decisions of the protected header of a statement whose payload was
//! not kept, and the claims of any other statement.
//!
//! A policy may discard payloads (`keep_payload = false`). The signature can then no longer be verified, nor the typed
//! record parsed. The issuer's key, the rule of the content type, its requirements on headers and claims, and the
//! interval of admission can still be checked. An [`Outline`] is not a permit: it states necessary conditions for the
//! admission, not sufficient ones.

use merkle::{LeafIndex, TreeSize};
use scitt::{SignedStatement, X5Chain};

use crate::answers::{Answers, Questions};
use crate::authenticate::{SideData, authenticate, unsigned};
use crate::authenticated::Authenticated;
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

/// An admitted statement that was read again for its claims. It admits nothing: the signature of a statement that
/// holds its payload is not checked.
#[derive(Debug)]
pub struct AdmittedStatement<'s> {
    stated: Authenticated<'s>,
    record: Record,
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

    /// Reads an admitted statement again, with what is stored beside it. Returns `None` if its payload is detached and not
    /// given, or cannot be read.
    ///
    /// # Errors
    /// The rule that the issuer breaks: its certificates or its detached payload are not those that were admitted, or
    /// this policy does not know it.
    pub fn read_again<'s>(
        &self,
        statement: &'s SignedStatement,
        side_data: SideData<'s>,
    ) -> Result<Option<AdmittedStatement<'s>>, Violation> {
        let has_payload = side_data.payload.is_some();
        let stated = match statement.is_detached() && has_payload {
            true => authenticate(statement, side_data, self.policy()),
            false => unsigned(statement, side_data, self.policy()),
        };
        let stated = stated.map_err(|untrusted| untrusted.violation())?;
        if statement.is_detached() && !has_payload {
            return Ok(None);
        }
        Ok(Record::read(&stated).ok().map(|record| AdmittedStatement { stated, record }))
    }

    /// Returns the questions to the log that [`claimed_again`](Self::claimed_again) needs answered.
    pub fn questions_again(&self, admitted: &AdmittedStatement<'_>) -> Questions {
        match admitted.own_guards() {
            Some(_) => Questions::default(),
            None => self.questions(&admitted.stated, &admitted.record),
        }
    }

    /// Derives the guards that an admitted statement claimed; `log` has the answers from below its leaf. If they do
    /// not admit it, because the log lost something else, these are the guards that it claimed in any log. Returns
    /// `None` if this policy does not admit it even then.
    pub fn claimed_again(&self, admitted: &AdmittedStatement<'_>, log: &Answers) -> Option<Vec<Guard>> {
        if let Some(guards) = admitted.own_guards() {
            return Some(guards);
        }
        let decide = |log: &Answers| self.decide(&admitted.stated, &admitted.record, log).into_permit();
        let permit = decide(log).or_else(|_| decide(&Answers::none())).ok()?;
        Some(permit.guards().to_vec())
    }
}

impl AdmittedStatement<'_> {
    /// Returns the guards of a statement whose claims do not depend on the log; `None` for any other.
    fn own_guards(&self) -> Option<Vec<Guard>> {
        let digest = self.stated.digest();
        match &self.record {
            Record::Erasure(erasure) => Some(erasure.guards(&digest).to_vec()),
            Record::OperatorAction(action) => Some(action.guards(&digest).to_vec()),
            Record::OperatorApproval(approval) => {
                let thumbprint = self.stated.key().thumbprint();
                Some(approval.guards(&digest, &thumbprint).to_vec())
            }
            Record::Policy(policy) => Some(vec![revision_guard(policy), permanent_guard(&digest)]),
            Record::ClockCorrection(_) | Record::IndexHead(_) | Record::Typed(_) => None,
        }
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
