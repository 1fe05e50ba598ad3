//! C3: the projection of a call onto the remaining budget, and its reservation (readings V-11, V-12).
//!
//! A tool declares its cost only after the call, so an estimate is reserved first: per meter, the higher of the
//! operator's cost and the tool's highest declared cost in this session. A call of a tool with unknown cost, a *blind*
//! call, reserves nothing on the unknown meters, and a session has only one such call of a tool in flight. It may
//! overrun a meter once; then the meter blocks further calls.

use crate::rules::Rules;
use crate::session::{Account, Meters, Reservation, ReservationId, Session, ShortHash, Stage};
use decimal::Decimal;
use vap::reason::Reason;

use super::DecisionContext;

/// The result of C3.
pub(super) enum Projected {
    /// The call fits the budget, with this reservation.
    Fits(Reservation),
    /// The call has to wait until another one is settled.
    Waits,
    /// The call does not fit the budget.
    Denied(Reason),
}

/// The properties of a call that C3 needs.
#[derive(Clone, Copy)]
pub(super) struct Spending<'a> {
    pub tool: &'a str,
    /// `true` if the call counts towards `max_calls`.
    pub counted: bool,
}

/// Projects a call onto the remaining budget.
pub(super) fn project(
    context: &DecisionContext<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
) -> Projected {
    match check(context, session, account, call) {
        Ok(Some(reservation)) => Projected::Fits(reservation),
        Ok(None) => Projected::Waits,
        Err(reason) => Projected::Denied(reason),
    }
}

fn check(
    context: &DecisionContext<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
) -> Result<Option<Reservation>, Reason> {
    let budget = session.agreed.budget();
    if budget.deadline.as_ref().is_some_and(|deadline| deadline.has_passed(context.now)) {
        return Err(Reason::DeadlinePassed);
    }
    if budget.max_calls.is_some_and(|most| call.counted && session.running.calls() >= most) {
        return Err(Reason::BudgetExceeded);
    }
    let tool = ShortHash::of(&[call.tool.as_bytes()]);
    let estimate = Estimate::of(context, session, call.tool, tool);
    for (meter, ceiling) in &budget.limits {
        let used = session.running.used(meter);
        estimate.fits(meter, used, *ceiling, Reason::MeterOverrun, Reason::BudgetExceeded)?;
    }
    check_principal(context, session, account, call, &estimate)?;
    if estimate.blind && context.rules.costs.denies_blind_calls(session.running.blind()) {
        return Err(Reason::CostUnknown);
    }
    let waits = !session.running.has_room() || (estimate.blind && session.running.is_blind(tool));
    Ok((!waits).then(|| Reservation {
        id: ReservationId(0),
        stage: Stage::Asking,
        tool,
        amounts: estimate.amounts,
        counted: call.counted,
        blind: estimate.blind,
        judge: Decimal::ZERO,
        by_principal: context.rules.principal_ceiling.is_some(),
    }))
}

/// Checks the operator's ceiling for all sessions of the principal (reading V-3).
fn check_principal(
    context: &DecisionContext<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
    estimate: &Estimate,
) -> Result<(), Reason> {
    let Some(ceiling) = &context.rules.principal_ceiling else { return Ok(()) };
    if session.agreed.ledger().is_none() {
        // The session was committed before the operator configured a ceiling.
        return Err(Reason::NoPrincipal);
    }
    let spent = account.spent.within(ceiling.window, context.now);
    if ceiling.max_calls.is_some_and(|most| call.counted && spent.calls() >= most) {
        return Err(Reason::PrincipalCeiling);
    }
    for (meter, most) in ceiling.limits.iter() {
        let reason = Reason::PrincipalCeiling;
        estimate.fits(meter, spent.used(meter), *most, reason.clone(), reason)?;
    }
    Ok(())
}

/// The estimated cost of a call on the limited meters.
struct Estimate {
    amounts: Meters,
    /// `true` if the cost is unknown on at least one limited meter.
    blind: bool,
}

impl Estimate {
    fn of(context: &DecisionContext<'_>, session: &Session, name: &str, tool: ShortHash) -> Self {
        let expected = context.rules.costs.expected(name, session.running.costs.of(tool));
        let amounts = expected.amounts(|meter| is_metered(context.rules, session, meter));
        // A meter that became limited by a change of the rules has no declared cost yet.
        let blind = metered(context.rules, session).any(|meter| !expected.is_known(meter));
        Estimate { amounts, blind }
    }

    /// Checks one meter. Reaching the ceiling is allowed. If it is already reached, only a call with known zero cost
    /// fits.
    fn fits(
        &self,
        meter: &str,
        used: Decimal,
        ceiling: Decimal,
        over: Reason,
        exceeded: Reason,
    ) -> Result<(), Reason> {
        if used > ceiling {
            return Err(over);
        }
        let projected = used.checked_add(self.amounts.of(meter));
        match projected.is_some_and(|sum| sum <= ceiling) && !(self.blind && used == ceiling) {
            true => Ok(()),
            false => Err(exceeded),
        }
    }
}

/// Returns the limited meters: those of the commitment, and the operator's for all sessions of the principal.
pub(super) fn metered<'a>(rules: &'a Rules, session: &'a Session) -> impl Iterator<Item = &'a str> {
    let own = session.agreed.budget().limits.keys().map(String::as_str);
    let principal = rules.principal_ceiling.iter().flat_map(|ceiling| ceiling.limits.iter());
    own.chain(principal.map(|(meter, _)| meter))
}

/// Returns `true` if the meter is limited by the commitment or the principal's ceiling.
pub(super) fn is_metered(rules: &Rules, session: &Session, meter: &str) -> bool {
    let principal = rules.principal_ceiling.as_ref();
    session.agreed.budget().limits.contains_key(meter)
        || principal.is_some_and(|ceiling| ceiling.limits.names(meter))
}
