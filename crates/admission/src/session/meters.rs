//! Amounts by meter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;

/// An amount for each of some meters. A meter that is not named stands at zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meters(BTreeMap<String, Decimal>);

impl Meters {
    /// What a meter stands at.
    #[must_use]
    pub fn of(&self, meter: &str) -> Decimal {
        self.0.get(meter).copied().unwrap_or_default()
    }

    /// Whether the meter is named.
    #[must_use]
    pub fn names(&self, meter: &str) -> bool {
        self.0.contains_key(meter)
    }

    /// Whether no meter is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many meters are named.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Every meter with its amount, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Decimal)> {
        self.0.iter().map(|(meter, amount)| (meter.as_str(), amount))
    }

    /// Sets a meter.
    pub fn set(&mut self, meter: &str, amount: Decimal) {
        self.0.insert(meter.to_owned(), amount);
    }

    /// Adds amounts, meter by meter.
    pub fn add(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            let sum = self.of(meter).saturating_add(*amount);
            self.set(meter, sum);
        }
    }

    /// Takes amounts away, meter by meter; none falls below zero.
    pub fn take(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            let rest = self.of(meter).saturating_sub(*amount);
            match rest > Decimal::ZERO {
                true => self.set(meter, rest),
                false => drop(self.0.remove(meter)),
            }
        }
    }

    /// Raises each meter to at least the amount given.
    pub fn raise(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            if !self.names(meter) || self.of(meter) < *amount {
                self.set(meter, *amount);
            }
        }
    }

    /// No more than so many of them: those that `first` names too, and then others by name.
    #[must_use]
    pub fn at_most(&self, most: usize, first: &Meters) -> Meters {
        let (first, others): (Vec<_>, Vec<_>) = self.iter().partition(|(meter, _)| first.names(meter));
        let kept = first.into_iter().chain(others).take(most);
        kept.map(|(meter, amount)| (meter.to_owned(), *amount)).collect()
    }

    /// The same amounts for the meters that `wanted` has a say about.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Meters {
        let wanted = |(meter, _): &(&String, &Decimal)| wanted(meter);
        Meters(self.0.iter().filter(wanted).map(|(meter, amount)| (meter.clone(), *amount)).collect())
    }
}

impl FromIterator<(String, Decimal)> for Meters {
    fn from_iter<I: IntoIterator<Item = (String, Decimal)>>(amounts: I) -> Self {
        Meters(amounts.into_iter().collect())
    }
}
