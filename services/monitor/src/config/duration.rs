//! Durations in the configuration file: `90s`, `15m`, `2h`, `1d`.

use std::time::Duration;

/// Parses a number and its unit; `None` if the text is invalid or the duration overflows.
pub fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        let seconds = |text| parse(text).map(|length| length.as_secs());
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("2h"), Some(7200));
        assert_eq!(seconds("1d"), Some(86_400));
        for bad in ["", "s", "90", "1.5h", "-1s", "1 h", "1ü", "18446744073709551615d"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
