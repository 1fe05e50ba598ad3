//! Times as text: RFC 3339, UTC.

/// Formats Unix seconds as RFC 3339, or as a number if they are outside the supported calendar.
pub(crate) fn rfc3339(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("{seconds} (unix seconds)"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn a_time_is_written_in_utc_and_one_beyond_every_calendar_as_its_number() {
        assert_eq!(rfc3339(1_795_304_586), "2026-11-21T23:43:06Z");
        assert_eq!(rfc3339(i64::MAX), "9223372036854775807 (unix seconds)");
    }
}
