//! C3: whether a call fits what is left, and what it reserves (readings V-11, V-12).
//!
//! What a call will cost is declared after it ran, so it reserves before: per meter the highest of what the operator knows and
//! what the tool declared in this session. A tool of which nobody knows anything reserves nothing and runs alone; it may
//! overrun a meter once, and the meter then blocks.

use crate::decimal::Decimal;
use crate::limits::BLIND_CALLS;
use crate::reason::Reason;
use crate::rules::Rules;
use crate::session::{Account, Mark, Meters, Reservation, ReservationId, Session, Stage};

use super::Scene;

/// What C3 says.
pub(super) enum Projected {
    /// It fits, and reserves this.
    Fits(Reservation),
    /// Another call has to settle first.
    Waits,
    /// It does not fit.
    Denied(Reason),
}

/// A call, as C3 sees it.
#[derive(Clone, Copy)]
pub(super) struct Spending<'a> {
    pub tool: &'a str,
    /// Whether it counts as a call.
    pub counted: bool,
}

/// Projects a call onto what is left.
pub(super) fn project(
    scene: &Scene<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
) -> Projected {
    match check(scene, session, account, call) {
        Ok(Some(reservation)) => Projected::Fits(reservation),
        Ok(None) => Projected::Waits,
        Err(reason) => Projected::Denied(reason),
    }
}

fn check(
    scene: &Scene<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
) -> Result<Option<Reservation>, Reason> {
    let budget = session.agreed.budget();
    if budget.deadline.as_ref().is_some_and(|deadline| deadline.has_passed(scene.now)) {
        return Err(Reason::DeadlinePassed);
    }
    if budget.max_calls.is_some_and(|most| call.counted && session.running.calls() >= most) {
        return Err(Reason::BudgetExceeded);
    }
    let tool = Mark::of(&[call.tool.as_bytes()]);
    let estimate = Estimate::of(scene, session, call.tool, tool);
    for (meter, ceiling) in &budget.limits {
        let used = session.running.used(meter);
        estimate.fits(meter, used, *ceiling, Reason::MeterOverrun, Reason::BudgetExceeded)?;
    }
    check_principal(scene, session, account, call, &estimate)?;
    if estimate.blind && (scene.rules.costs.strict || session.running.blind() >= BLIND_CALLS) {
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
        by_principal: scene.rules.principal_ceiling.is_some(),
    }))
}

/// The operator's ceiling over all sessions of the principal (reading V-3).
fn check_principal(
    scene: &Scene<'_>,
    session: &Session,
    account: &Account,
    call: Spending<'_>,
    estimate: &Estimate,
) -> Result<(), Reason> {
    let Some(ceiling) = &scene.rules.principal_ceiling else { return Ok(()) };
    if session.agreed.ledger().is_none() {
        // Committed before there was a ceiling.
        return Err(Reason::NoPrincipal);
    }
    let spent = account.spent.within(ceiling.window, scene.now);
    if ceiling.max_calls.is_some_and(|most| call.counted && spent.calls() >= most) {
        return Err(Reason::PrincipalCeiling);
    }
    for (meter, most) in ceiling.limits.iter() {
        let reason = Reason::PrincipalCeiling;
        estimate.fits(meter, spent.used(meter), *most, reason.clone(), reason)?;
    }
    Ok(())
}

/// What a call may cost on the meters that somebody limits.
struct Estimate {
    amounts: Meters,
    /// Whether nobody knows, on one of them at least.
    blind: bool,
}

impl Estimate {
    fn of(scene: &Scene<'_>, session: &Session, name: &str, tool: Mark) -> Self {
        let operator = scene.rules.costs.of(name);
        let learned = session.running.costs.of(tool);
        let limited = |meter: &str| is_metered(scene.rules, session, meter);
        let mut amounts = operator.only(limited);
        if let Some(learned) = learned {
            amounts.raise(&learned.only(limited));
        }
        // A meter that is limited only since the rules were changed is one of which the tool has said nothing yet.
        let told = |meter: &str| learned.is_some_and(|learned| learned.names(meter));
        let known = |meter: &str| operator.names(meter) || (told(meter) && !scene.rules.costs.strict);
        let blind = metered(scene.rules, session).any(|meter| !known(meter));
        Estimate { amounts, blind }
    }

    /// Equality is no excess. At the very ceiling only a call that is known to cost nothing fits.
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

/// The meters that somebody limits: the commitment, or the operator for all sessions of the principal.
pub(super) fn metered<'a>(rules: &'a Rules, session: &'a Session) -> impl Iterator<Item = &'a str> {
    let own = session.agreed.budget().limits.keys().map(String::as_str);
    let principal = rules.principal_ceiling.iter().flat_map(|ceiling| ceiling.limits.iter());
    own.chain(principal.map(|(meter, _)| meter))
}

/// Whether somebody limits the meter.
pub(super) fn is_metered(rules: &Rules, session: &Session, meter: &str) -> bool {
    let principal = rules.principal_ceiling.as_ref();
    session.agreed.budget().limits.contains_key(meter)
        || principal.is_some_and(|ceiling| ceiling.limits.names(meter))
}
