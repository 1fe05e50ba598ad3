//! Amounts of named meters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use decimal::Decimal;

/// An amount for each of some meters. A meter without an entry counts as zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meters(BTreeMap<String, Decimal>);

impl Meters {
    /// Returns a meter's amount, or zero without an entry.
    #[must_use]
    pub fn of(&self, meter: &str) -> Decimal {
        self.0.get(meter).copied().unwrap_or_default()
    }

    /// Returns `true` if the meter has an entry.
    #[must_use]
    pub fn names(&self, meter: &str) -> bool {
        self.0.contains_key(meter)
    }

    /// Returns `true` if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the entries in the order of the meters' names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Decimal)> {
        self.0.iter().map(|(meter, amount)| (meter.as_str(), amount))
    }

    /// Sets a meter's amount.
    pub fn set(&mut self, meter: &str, amount: Decimal) {
        self.0.insert(meter.to_owned(), amount);
    }

    /// Adds amounts, meter by meter, saturating at [`Decimal::MAX`].
    pub fn add(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            let sum = self.of(meter).saturating_add(*amount);
            self.set(meter, sum);
        }
    }

    /// Subtracts amounts, meter by meter. An entry that would become zero or less is removed.
    pub fn take(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            let rest = self.of(meter).saturating_sub(*amount);
            match rest > Decimal::ZERO {
                true => self.set(meter, rest),
                false => drop(self.0.remove(meter)),
            }
        }
    }

    /// Raises each meter to at least the given amount.
    pub fn raise(&mut self, amounts: &Meters) {
        for (meter, amount) in amounts.iter() {
            if !self.names(meter) || self.of(meter) < *amount {
                self.set(meter, *amount);
            }
        }
    }

    /// Returns at most `most` entries: first those that `first` has too, then others by name.
    #[must_use]
    pub fn at_most(&self, most: usize, first: &Meters) -> Meters {
        let (first, others): (Vec<_>, Vec<_>) = self.iter().partition(|(meter, _)| first.names(meter));
        let kept = first.into_iter().chain(others).take(most);
        kept.map(|(meter, amount)| (meter.to_owned(), *amount)).collect()
    }

    /// Returns the entries of the meters for which `wanted` is `true`.
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
