//! Percentiles and medians.

/// Returns the `p` quantile by nearest rank, which is always one of the values; NaN if there are none.
pub fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * p).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Returns the median; NaN if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(&mut values.into_iter().collect::<Vec<_>>(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.0), 1.0);
        assert_eq!(percentile(&mut values, 0.5), 51.0);
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut values, 1.0), 100.0);
    }

    #[test]
    fn the_median_does_not_depend_on_order() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([7.0]), 7.0);
    }

    #[test]
    fn of_nothing_there_is_no_median() {
        assert!(median([]).is_nan());
    }
}
