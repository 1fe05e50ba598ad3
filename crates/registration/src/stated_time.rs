//! Times in UTC, in one format: `YYYY-MM-DDThh:mm:ss[.f]Z`.

use jiff::Timestamp;
use roa::text::UtcTime;

/// A time in UTC, as a statement gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedTime {
    /// Unix seconds, rounded down.
    pub unix_seconds: u64,
    /// True if the text ends in `+00:00` instead of `Z`, which a policy must allow.
    pub numeric_offset: bool,
}

impl StatedTime {
    /// Parses a time in the single admitted format. Returns `None` for any other format, and for times that do not
    /// exist or are before 1970.
    pub fn parse(text: &str) -> Option<StatedTime> {
        let time = UtcTime::with_offset(text).filter(|time| time.0 >= Timestamp::UNIX_EPOCH)?;
        let unix_seconds = u64::try_from(time.unix_seconds()).ok()?;
        Some(StatedTime { unix_seconds, numeric_offset: text.ends_with("+00:00") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_unix_seconds() {
        let at = |text: &str| StatedTime::parse(text).map(|at| at.unix_seconds);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2026-01-01T00:00:00Z"), Some(1_767_225_600));
        assert_eq!(at("2024-02-29T23:59:59.999Z"), Some(1_709_251_199));
        assert!(StatedTime::parse("2026-01-01T00:00:00+00:00").is_some_and(|at| at.numeric_offset));
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
            "1969-12-31T23:59:59.5Z",
            "2026-01-01T00:00:00Z+00:00",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00ZZ",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(StatedTime::parse(bad), None, "{bad}");
        }
    }
}
