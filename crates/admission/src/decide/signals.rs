//! The inputs of the risk score of a call (section 10).

use serde_json::Value;

use crate::risk::{self, Degree, Signals};
use crate::session::{Reservation, Session};
use decimal::Decimal;
use vap::message::Sensitivity;

use super::DecisionContext;

/// The comparison of a call with the session's recent calls.
#[derive(Clone, Copy)]
pub(super) struct Recurrence {
    pub repeats: usize,
    pub known_tool: bool,
    pub known_shape: bool,
}

/// Computes the signals of a call.
pub(super) fn signals(
    context: &DecisionContext<'_>,
    session: &Session,
    sensitivity: Option<Sensitivity>,
    recurrence: Recurrence,
    reservation: &Reservation,
) -> Signals {
    let used = used(session, reservation);
    Signals {
        sensitivity: risk::sensitivity(sensitivity),
        burn_rate: elapsed(context, session).map_or(Degree::ZERO, |elapsed| risk::burn_rate(used, elapsed)),
        looping: risk::looping(recurrence.repeats, session.running.denied_in_a_row()),
        novelty: risk::novelty(recurrence.known_tool, recurrence.known_shape),
        proximity: risk::proximity(used),
    }
}

/// Returns the largest used share of the budget's limits, with this call included.
fn used(session: &Session, reservation: &Reservation) -> Degree {
    let budget = session.agreed.budget();
    let calls = budget.max_calls.map(|most| {
        let calls = session.running.calls() + u64::from(reservation.counted);
        part(calls.into(), most.into())
    });
    let meters = budget.limits.iter().map(|(meter, ceiling)| {
        part(session.running.used(meter).saturating_add(reservation.amounts.of(meter)), *ceiling)
    });
    meters.chain(calls).max().unwrap_or(Degree::ZERO)
}

/// Returns the elapsed share of the session's time; `None` without a deadline.
fn elapsed(context: &DecisionContext<'_>, session: &Session) -> Option<Degree> {
    let (begin, end) = (session.agreed.committed().as_second(), session.agreed.ends()?.as_second());
    let seconds = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    Some(part(seconds(begin, context.now.as_second()).into(), seconds(begin, end).max(1).into()))
}

/// Computes `part / whole` in thousandths by binary search, since [`Decimal`] has no division.
fn part(part: Decimal, whole: Decimal) -> Degree {
    let (mut low, mut high) = (0u64, 1000u64);
    while low < high {
        let middle = (low + high).div_ceil(2);
        match times(whole, middle) <= times(part, 1000) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Degree::thousandths(low)
}

/// Multiplies a decimal by an integer, by repeated doubling.
fn times(decimal: Decimal, mut times: u64) -> Decimal {
    let (mut sum, mut double) = (Decimal::ZERO, decimal);
    while times > 0 {
        if times % 2 == 1 {
            sum = sum.saturating_add(double);
        }
        double = double.saturating_add(double);
        times /= 2;
    }
    sum
}

/// Returns the shape of arguments: the names and types of their members without values. Arguments that have no value, such
/// as those with a number that no double holds, are their own shape.
pub(super) fn shape(arguments: &str) -> String {
    let mut shape = String::new();
    match jose::json::parse_text(arguments) {
        Ok(value) => append_shape(&value, &mut shape),
        Err(_) => shape.push_str(arguments),
    }
    shape
}

fn append_shape(value: &Value, shape: &mut String) {
    match value {
        Value::Null => shape.push('n'),
        Value::Bool(_) => shape.push('b'),
        Value::Number(_) => shape.push('0'),
        Value::String(_) => shape.push('s'),
        Value::Array(items) => {
            shape.push('[');
            items.iter().take(1).for_each(|item| append_shape(item, shape));
            shape.push(']');
        }
        Value::Object(members) => {
            shape.push('{');
            for (name, member) in members {
                shape.push_str(&Value::from(name.as_str()).to_string());
                append_shape(member, shape);
            }
            shape.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::read(text).unwrap()
    }

    #[test]
    fn a_part_is_cut_to_thousandths() {
        for (some, whole, thousandths) in
            [("0", "1", 0), ("1", "3", 333), ("0.3", "0.3", 1000), ("9", "1", 1000), ("0.0001", "1", 0)]
        {
            assert_eq!(
                part(decimal(some), decimal(whole)),
                Degree::thousandths(thousandths),
                "{some}/{whole}"
            );
        }
    }

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        assert_eq!(
            shape(r#"{"b":1,"a":["x","y"],"c":{"d":null}}"#),
            shape(r#"{"a":["z"],"b":22,"c":{"d":null}}"#)
        );
        assert_ne!(shape(r#"{"a":1}"#), shape(r#"{"a":"1"}"#));
    }
}
