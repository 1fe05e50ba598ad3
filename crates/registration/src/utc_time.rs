//! Times in UTC, in one format: `YYYY-MM-DDThh:mm:ss[.f]Z`.

use jiff::civil::Date;

/// A time in UTC, as a statement gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime {
    /// Unix seconds, rounded down.
    pub unix_seconds: u64,
    /// True if the text ends in `+00:00` instead of `Z`, which a policy must allow.
    pub numeric_offset: bool,
}

impl UtcTime {
    /// Parses a time in the single admitted format. Returns `None` for any other format, and for times that do not
    /// exist.
    pub fn parse(text: &str) -> Option<UtcTime> {
        let (seconds, rest) = text.split_at_checked(19)?;
        let (fraction, numeric_offset) = match rest.strip_suffix('Z') {
            Some(fraction) => (fraction, false),
            None => (rest.strip_suffix("+00:00")?, true),
        };
        is_fraction(fraction).then_some(())?;
        Some(UtcTime { unix_seconds: unix_seconds(seconds.as_bytes())?, numeric_offset })
    }
}

/// Returns whether a text is empty, or a point followed by one to nine digits.
fn is_fraction(text: &str) -> bool {
    match text.strip_prefix('.') {
        None => text.is_empty(),
        Some(digits) => (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// Parses `YYYY-MM-DDThh:mm:ss` from 1970 on. The second 60 is rejected, because Unix time does not represent it.
fn unix_seconds(text: &[u8]) -> Option<u64> {
    let shaped = text.iter().zip(b"0000-00-00T00:00:00").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    shaped.then_some(())?;
    let number = |from: usize, to: usize| {
        text[from..to].iter().fold(0i16, |sum, digit| sum * 10 + i16::from(digit - b'0'))
    };
    let small = |from: usize| number(from, from + 2) as i8;
    let day = Date::new(number(0, 4), small(5), small(8)).ok()?;
    let (hour, minute, second) = (small(11), small(14), small(17));
    (hour < 24 && minute < 60 && second < 60).then_some(())?;
    let at = day.at(hour, minute, second, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(at.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_unix_seconds() {
        let at = |text: &str| UtcTime::parse(text).map(|at| at.unix_seconds);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2026-01-01T00:00:00Z"), Some(1_767_225_600));
        assert_eq!(at("2024-02-29T23:59:59.999Z"), Some(1_709_251_199));
        assert!(UtcTime::parse("2026-01-01T00:00:00+00:00").is_some_and(|at| at.numeric_offset));
    }

    #[test]
    fn any_other_spelling_and_any_time_that_never_was_are_refused() {
        for bad in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01t00:00:00Z",
            "2026-01-01T00:00:00z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.0000000001Z",
            "2026-01-01T00:00:00,5Z",
            "2026-01-01T00:00:00+01:00",
            "2026-01-01T00:00:00-00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-12-31T23:59:60Z",
            "1969-12-31T23:59:59Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00ZZ",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(UtcTime::parse(bad), None, "{bad}");
        }
    }
}
