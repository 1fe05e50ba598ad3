//! Parsers for durations and sizes in configuration files: `90s`, `15m`, `2h`, `1d`; `4MiB`, `1GiB`.

use std::time::Duration;

/// Parses a duration: one integer with the unit `ms`, `s`, `m`, `h` or `d`. `None` if the text is none.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if let Some(number) = text.strip_suffix("ms") {
        return whole(number).map(Duration::from_millis);
    }
    let unit = text.chars().next_back()?;
    let number = whole(text.strip_suffix(unit)?)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// Parses a size: one integer with a binary unit from `KiB` to `TiB`, or bytes without unit. `None` if the text is
/// none.
pub fn parse_size(text: &str) -> Option<u64> {
    for (unit, factor) in [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)] {
        if let Some(number) = text.strip_suffix(unit) {
            return whole(number.trim_end())?.checked_mul(factor);
        }
    }
    whole(text)
}

/// Parses an integer of digits only; `parse` alone would accept a sign.
fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        let milliseconds = |text| parse_duration(text).map(|length| length.as_millis());
        assert_eq!(milliseconds("250ms"), Some(250));
        assert_eq!(milliseconds("90s"), Some(90_000));
        assert_eq!(milliseconds("2h"), Some(7_200_000));
        for bad in ["", "s", "90", "1.5h", "-1s", "+1s", "1 h", "1ü", "18446744073709551615d"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_size_is_bytes_or_has_a_binary_unit() {
        assert_eq!(parse_size("1000"), Some(1000));
        assert_eq!(parse_size("4MiB"), Some(4 << 20));
        assert_eq!(parse_size("1 GiB"), Some(1 << 30));
        for bad in ["", "MiB", "1MB", "-1", "1.5GiB", "99999999999TiB"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
