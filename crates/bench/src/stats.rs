//! Percentiles, medians and spreads.

/// Median and range of a figure over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Returns median and range; `None` if there are no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let median = percentile(&mut values, 0.5)?;
        Some(Self { median, least: *values.first()?, most: *values.last()? })
    }

    /// Returns whether the two ranges have no value in common.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        self.most < other.least || other.most < self.least
    }
}

/// Returns the `p` quantile by nearest rank, which is always one of the values, and sorts them; `None` if there are
/// none.
pub(crate) fn percentile(values: &mut [f64], p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * p).round() as usize).copied()
}

/// Returns the median; `None` if there are no values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    percentile(&mut values.into_iter().collect::<Vec<_>>(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (p, expected) in [(0.0, 1.0), (0.5, 51.0), (0.99, 99.0), (1.0, 100.0)] {
            assert_eq!(percentile(&mut values, p), Some(expected));
        }
    }

    #[test]
    fn the_median_does_not_depend_on_order() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn ranges_are_apart_if_no_value_is_in_both() {
        let spread = |values: [f64; 3]| Spread::of(values).unwrap();
        let low = spread([1.0, 3.0, 2.0]);
        assert_eq!((low.median, low.least, low.most), (2.0, 1.0, 3.0));
        assert!(low.is_apart_from(&spread([4.0, 5.0, 6.0])) && spread([4.0, 5.0, 6.0]).is_apart_from(&low));
        assert!(!low.is_apart_from(&spread([3.0, 5.0, 6.0])));
    }
}
