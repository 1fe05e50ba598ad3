//! Decision about a statement under a policy: the checks that an operator configures.
//!
//! Decisions are pure: the same statement under the same policy always has the same result, so that anyone can replay a
//! log. Conditions on the time or on the rest of the log become part of the [`Permit`].

use jose::members::quote;
use merkle::{LeafIndex, TreeSize};
use scitt::{Algorithm, Header, Label};

use crate::answers::{Answers, Questions};
use crate::approvals::{approval_questions, check_approvals};
use crate::authenticate::{SideData, authenticate};
use crate::authenticated::Authenticated;
use crate::clock_correction::{CLOCK_CORRECTION_RULE, ClockCorrection};
use crate::conditions::{self, Stop};
use crate::content_types::{content_type, spell};
use crate::decision::{Decision, Permit, Refusal};
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::permanent_guard;
use crate::guard::{Guard, GuardKind};
use crate::index_head::{self, INDEX_HEAD_RULE};
use crate::limits::{CLOCK_SKEW, MAX_IDENTIFIER};
use crate::opaque::OpaqueRecord;
use crate::operator::{APPROVAL_RULE, Effect};
use crate::policy::{CwtClaim, IssuerPattern, Policy, TypeRule};
use crate::profile::{HashSetting, TypedRecord};
use crate::record::Record;
use crate::statement_facts::stored_facts;
use crate::time_window::{Bound, TimeWindow};
use crate::untrusted::Untrusted;
use crate::violation::{Place, RuleName, Violation};

/// A policy and the leaf that holds it, which every decision names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyInForce {
    policy: Policy,
    leaf: LeafIndex,
}

impl PolicyInForce {
    /// Creates the pair of a policy and the leaf at which the log holds it.
    pub fn new(policy: Policy, leaf: LeafIndex) -> Self {
        PolicyInForce { policy, leaf }
    }

    /// The policy's contents and digest.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The leaf index of the policy.
    pub fn leaf(&self) -> LeafIndex {
        self.leaf
    }

    /// Authenticates the statement's issuer under this policy; see [`authenticate`].
    pub fn authenticate<'s>(
        &self,
        statement: &'s scitt::SignedStatement,
        side_data: SideData<'s>,
    ) -> Result<Authenticated<'s>, Untrusted> {
        authenticate(statement, side_data, &self.policy)
    }

    /// Returns the questions to the log that [`decide`](Self::decide) needs answered.
    pub fn questions(&self, statement: &Authenticated<'_>, record: &Record) -> Questions {
        let mut asked = Questions::default();
        match record {
            Record::Erasure(erasure) => erasure.questions(&mut asked),
            Record::OperatorAction(action) => action.questions(&mut asked),
            Record::Typed(record) => {
                if let Ok(rule) = self.type_rule(statement) {
                    rule.profile.as_dyn().questions(statement, record, &mut asked);
                }
            }
            Record::Policy(_)
            | Record::ClockCorrection(_)
            | Record::OperatorApproval(_)
            | Record::IndexHead(_) => {}
        }
        approval_questions(statement, record, self.policy.contents(), &mut asked);
        asked
    }

    /// Returns the clock correction in a statement, if this policy admits it. The signature is verified.
    pub fn clock_correction(&self, statement: &scitt::SignedStatement) -> Option<ClockCorrection> {
        let authenticated = self.authenticate(statement, SideData::default()).ok()?;
        let record @ Record::ClockCorrection(_) = Record::read(&authenticated).ok()? else { return None };
        let permit = self.decide(&authenticated, &record, &Answers::none()).into_permit().ok()?;
        permit.clock_correction().cloned()
    }

    /// Decides whether an authenticated statement may be registered. `log` answers this decision's
    /// [`questions`](Self::questions).
    pub fn decide(&self, statement: &Authenticated<'_>, record: &Record, log: &Answers) -> Decision {
        match self.admit(statement, record, log) {
            Ok(permit) => Decision::Admit(permit),
            Err(Stop::Broken(violation)) => Decision::Refuse(self.refuse(violation)),
            Err(Stop::Undecided(undecided)) => Decision::Undecided(undecided),
        }
    }

    /// Returns whether the log stores the detached payload of an admitted statement with this header (`keep_payload`).
    pub fn keeps_payload(&self, header: &Header) -> bool {
        content_type(header).and_then(|name| self.policy.rule_for(name)).is_none_or(|rule| rule.keep_payload)
    }

    /// Wraps a violation found before the decision as this policy's [`Refusal`].
    pub fn refuse(&self, violation: Violation) -> Refusal {
        Refusal { policy: self.leaf, policy_digest: self.policy.digest(), violation }
    }

    fn admit(&self, statement: &Authenticated<'_>, record: &Record, log: &Answers) -> Result<Permit, Stop> {
        let claimed = claimed_times(statement)?;
        let terms = self.terms(statement, record, log)?;
        check_approvals(statement, record, self.policy.contents(), log)?;
        let permit = self.permit(statement, record, claimed, terms);
        match permit.valid().is_empty() {
            false => Ok(permit),
            true => {
                let detail = "there is no time at which all its conditions hold";
                Err(broken("never-valid", Place::Statement, detail).into())
            }
        }
    }

    /// Builds the permit of an admitted statement. Nothing else does.
    fn permit(
        &self,
        statement: &Authenticated<'_>,
        record: &Record,
        claimed: Vec<Bound>,
        terms: PermitTerms,
    ) -> Permit {
        let PermitDemands { bounds, guards, relied_absent, relied_free, learned } = terms.demands;
        Permit {
            statement: statement.digest(),
            policy: self.leaf,
            policy_digest: self.policy.digest(),
            rule: terms.rule,
            bounds: [statement.bound()].into_iter().chain(claimed).chain(bounds).collect(),
            largest_tree: terms.largest_tree,
            guards,
            relied_absent,
            relied_free,
            facts: stored_facts(statement, record, learned),
            successor: terms.successor,
            corrects: terms.correction,
            effect: terms.effect.map(Box::new),
        }
    }

    /// Checks the rules of the statement's kind, and returns the terms of its permit.
    fn terms(
        &self,
        statement: &Authenticated<'_>,
        record: &Record,
        log: &Answers,
    ) -> Result<PermitTerms, Stop> {
        let origin = &self.policy.contents().origin;
        Ok(match record {
            Record::Policy(successor) => self.check_successor(statement, successor)?,
            Record::Erasure(erasure) => {
                check_holds_its_payload(statement)?;
                let demands = erasure.check(statement, origin, log)?;
                PermitTerms::new(RuleName::fixed("erasure"), demands)
            }
            Record::ClockCorrection(correction) => {
                check_holds_its_payload(statement)?;
                let demands = correction.check(statement, origin)?;
                let correction = Some((**correction).clone());
                PermitTerms {
                    correction,
                    ..PermitTerms::new(RuleName::fixed(CLOCK_CORRECTION_RULE), demands)
                }
            }
            Record::OperatorAction(action) => {
                check_holds_its_payload(statement)?;
                let (demands, effect) = action.check(statement, origin, log)?;
                let rule = RuleName::fixed(action.rule());
                PermitTerms { effect: Some(effect), ..PermitTerms::new(rule, demands) }
            }
            Record::OperatorApproval(approval) => {
                check_holds_its_payload(statement)?;
                let demands = approval.check(statement, origin)?;
                PermitTerms::new(RuleName::fixed(APPROVAL_RULE), demands)
            }
            Record::IndexHead(head) => {
                check_holds_its_payload(statement)?;
                let demands = index_head::check(head, statement, self.policy.contents())?;
                PermitTerms::new(RuleName::fixed(INDEX_HEAD_RULE), demands)
            }
            Record::Typed(record) => self.check_type_rule(statement, record, log)?,
        })
    }

    /// Checks the rules of the content type, then those of its profile, then the operator's conditions.
    fn check_type_rule(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        log: &Answers,
    ) -> Result<PermitTerms, Stop> {
        let rule = self.type_rule(statement)?;
        check_common(rule, statement)?;
        let log_end = &self.policy.contents().log_end;
        let from_opaque = match record.get::<OpaqueRecord>() {
            Some(_) => rule.profile.as_dyn().read_opaque(statement)?,
            None => None,
        };
        let typed = from_opaque.as_ref().unwrap_or(record);
        let mut demands = self.policy.checking_profile(rule).as_dyn().check(statement, typed, log)?;
        demands.bounds.splice(0..0, log_end.bound());
        if let Some(record) = &from_opaque {
            let mut found = Facts(demands.learned);
            record.as_dyn().facts(&mut found);
            demands.learned = found.0;
        }
        let name = conditions::ask(rule, statement, typed)?;
        Ok(PermitTerms { largest_tree: log_end.largest_tree(), ..PermitTerms::new(name, demands) })
    }

    pub(crate) fn type_rule(&self, statement: &Authenticated<'_>) -> Result<&TypeRule, Violation> {
        let label = if statement.header().hash_envelope().is_some() { "259" } else { "3" };
        let Some(name) = content_type(statement.header()) else {
            return Err(broken(
                "content-type-missing",
                Place::protected(label),
                "the policy admits statements by content type",
            ));
        };
        self.policy.rule_for(name).ok_or_else(|| {
            let detail = format!("the policy does not admit {}", quote(&spell(name)));
            broken("content-type-not-admitted", Place::protected(label), detail)
        })
    }

    /// Checks a successor policy: it must name this log's `iss` and origin, and have the next revision.
    fn check_successor(
        &self,
        statement: &Authenticated<'_>,
        successor: &Policy,
    ) -> Result<PermitTerms, Violation> {
        let (ours, theirs) = (self.policy.contents(), successor.contents());
        if (&ours.iss, &ours.origin) != (&theirs.iss, &theirs.origin) {
            return Err(broken("policy-identity", Place::payload(""), "the policy is that of another log"));
        }
        check_holds_its_payload(statement)?;
        check_policy_subject(statement, successor)?;
        if theirs.revision != ours.revision + 1 {
            let detail =
                format!("revision {} follows {}, not {}", ours.revision + 1, ours.revision, theirs.revision);
            return Err(broken("policy-revision", Place::payload("/revision"), detail));
        }
        Ok(PermitTerms::of_policy(statement, successor))
    }

    /// Admits entry 0 under the policy that it contains.
    pub(crate) fn genesis(self, statement: &Authenticated<'_>) -> Result<(PolicyInForce, Permit), Refusal> {
        self.admit_genesis(statement).map_err(|violation| self.refuse(violation)).map(|permit| (self, permit))
    }

    fn admit_genesis(&self, statement: &Authenticated<'_>) -> Result<Permit, Violation> {
        check_policy_subject(statement, &self.policy)?;
        if self.policy.contents().revision != 0 {
            return Err(broken(
                "policy-revision",
                Place::payload("/revision"),
                "the first policy of a log is revision 0: set revision = 0",
            ));
        }
        let record = Record::Policy(self.policy.clone());
        let terms = PermitTerms::of_policy(statement, &self.policy);
        Ok(self.permit(statement, &record, claimed_times(statement)?, terms))
    }
}

/// The terms of a permit that the rules of a statement's kind decide.
struct PermitTerms {
    /// The rule that admits.
    rule: RuleName,
    demands: PermitDemands,
    largest_tree: Option<TreeSize>,
    successor: Option<Policy>,
    correction: Option<ClockCorrection>,
    effect: Option<Effect>,
}

impl PermitTerms {
    fn new(rule: RuleName, demands: PermitDemands) -> PermitTerms {
        PermitTerms { rule, demands, largest_tree: None, successor: None, correction: None, effect: None }
    }

    /// Returns the terms of a policy, which replaces the one in force.
    fn of_policy(statement: &Authenticated<'_>, successor: &Policy) -> PermitTerms {
        let guards = [revision_guard(successor), permanent_guard(&statement.digest())];
        let terms = PermitTerms::new(RuleName::fixed("policy"), PermitDemands::guards(guards));
        PermitTerms { successor: Some(successor.clone()), ..terms }
    }
}

/// Requires an attached payload: monitors and auditors must find the operator's statements in the log.
fn check_holds_its_payload(statement: &Authenticated<'_>) -> Result<(), Violation> {
    match statement.statement().is_detached() {
        false => Ok(()),
        true => {
            let detail = "statements of the operator hold their own payload";
            Err(broken("detached-payload-not-admitted", Place::payload(""), detail))
        }
    }
}

fn check_policy_subject(statement: &Authenticated<'_>, policy: &Policy) -> Result<(), Violation> {
    match statement.sub() == policy.contents().origin {
        true => Ok(()),
        false => Err(broken(
            "policy-subject",
            Place::protected("15/2"),
            "the subject of a policy is the log's origin",
        )),
    }
}

pub(crate) fn revision_guard(policy: &Policy) -> Guard {
    Guard::new(GuardKind::PolicyRevision, &[&policy.contents().revision.to_be_bytes()])
}

/// Returns the intervals of the CWT claims `exp` and `nbf` (RFC 8392, sections 3.1.4 and 3.1.5). [`CLOCK_SKEW`] is
/// subtracted from `nbf`, because an issuer's clock may be slightly ahead of the log's.
pub(crate) fn claimed_times(statement: &Authenticated<'_>) -> Result<Vec<Bound>, Violation> {
    let Some(claims) = statement.header().claims() else { return Ok(Vec::new()) };
    let mut bounds = Vec::new();
    if let Some(nbf) = claims.nbf() {
        let window = TimeWindow::from(u64::try_from(nbf).unwrap_or(0).saturating_sub(CLOCK_SKEW));
        bounds.push(Bound { rule: RuleName::fixed("nbf"), place: Place::protected("15/5"), window });
    }
    if let Some(exp) = claims.exp() {
        let last = u64::try_from(exp).ok().and_then(|exp| exp.checked_sub(1));
        let last = last.ok_or_else(|| broken("exp", Place::protected("15/4"), "it expired before 1970"))?;
        bounds.push(Bound {
            rule: RuleName::fixed("exp"),
            place: Place::protected("15/4"),
            window: TimeWindow::until(last),
        });
    }
    Ok(bounds)
}

pub(crate) fn check_common(rule: &TypeRule, statement: &Authenticated<'_>) -> Result<(), Violation> {
    check_issuer(&rule.issuers, statement.iss())?;
    check_algorithm(&rule.algorithms, statement.algorithm())?;
    check_size(rule, statement)?;
    check_shape(rule, statement)?;
    check_claims(&rule.claims, statement)?;
    check_headers(&rule.headers, statement.header())
}

fn check_issuer(issuers: &[IssuerPattern], iss: &str) -> Result<(), Violation> {
    match issuers.is_empty() || issuers.iter().any(|pattern| pattern.fits(iss)) {
        true => Ok(()),
        false => {
            let detail = format!("the policy does not take this content type from {}", quote(iss));
            Err(broken("issuer-not-admitted", Place::protected("15/1"), detail))
        }
    }
}

/// Checks the algorithm by its curve: RFC 9053 and RFC 9864 have different identifiers for the same algorithm of a
/// curve, so listing one admits both.
fn check_algorithm(algorithms: &[Algorithm], algorithm: Algorithm) -> Result<(), Violation> {
    match algorithms.is_empty() || algorithms.iter().any(|listed| listed.curve() == algorithm.curve()) {
        true => Ok(()),
        false => {
            let detail = format!("the policy does not take this content type signed with {algorithm}");
            Err(broken("algorithm-not-accepted", Place::protected("1"), detail))
        }
    }
}

fn check_size(rule: &TypeRule, statement: &Authenticated<'_>) -> Result<(), Violation> {
    let size = statement.statement().bytes().len().max(statement.payload().len());
    if size as u64 > rule.max_size {
        return Err(broken(
            "too-large",
            Place::Statement,
            format!("{size} bytes, at most {} are admitted", rule.max_size),
        ));
    }
    match statement.sub().chars().nth(MAX_IDENTIFIER) {
        None => Ok(()),
        Some(_) => Err(broken(
            "subject-too-long",
            Place::protected("15/2"),
            format!("more than {MAX_IDENTIFIER} characters"),
        )),
    }
}

fn check_shape(rule: &TypeRule, statement: &Authenticated<'_>) -> Result<(), Violation> {
    if statement.statement().is_detached() && !rule.detached {
        let detail = "the policy wants the payload of this content type attached";
        return Err(broken("detached-payload-not-admitted", Place::payload(""), detail));
    }
    let of_its_own = matches!(rule.profile.as_dyn().hash_setting(), HashSetting::Option(_));
    if statement.header().hash_envelope().is_some() && !rule.hash_envelope && !of_its_own {
        let detail = "the policy does not take this content type by its hash";
        return Err(broken("hash-envelope-not-admitted", Place::protected("258"), detail));
    }
    Ok(())
}

fn check_headers(labels: &[Label], header: &Header) -> Result<(), Violation> {
    match labels.iter().find(|label| !header.contains(label)) {
        None => Ok(()),
        Some(label) => {
            let label = match label {
                Label::Int(number) => number.to_string(),
                Label::Text(text) => quote(text),
            };
            let detail = format!("the policy asks for the protected header {label}");
            Err(broken("header-missing", Place::protected(label), detail))
        }
    }
}

fn check_claims(claims: &[CwtClaim], statement: &Authenticated<'_>) -> Result<(), Violation> {
    let present = statement.header().claims();
    for claim in claims {
        let (value, place) = match claim {
            CwtClaim::Iat => (present.and_then(|claims| claims.iat()), "15/6"),
            CwtClaim::Exp => (present.and_then(|claims| claims.exp()), "15/4"),
            CwtClaim::Nbf => (present.and_then(|claims| claims.nbf()), "15/5"),
        };
        if value.is_none() {
            return Err(broken(
                "claim-missing",
                Place::protected(place),
                format!("the policy asks for the claim {}", claim.name()),
            ));
        }
    }
    Ok(())
}

fn broken(rule: &'static str, place: Place, detail: impl Into<String>) -> Violation {
    Violation { rule: RuleName::fixed(rule), place, detail: detail.into() }
}
