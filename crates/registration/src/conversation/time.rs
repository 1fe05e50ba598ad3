//! Times in a record: RFC 3339 text, or milliseconds (readings D5, D6, C-1).
//!
//! The CDDL's pattern admits 30 February and the second 60. They are accepted with a warning, because the log records
//! what was signed.

use jiff::civil::Date;

use super::node::Node;

/// The smallest integer that is accepted as milliseconds: 3 March 1973. Interpreted as seconds, it would be in the year
/// 5138.
pub(super) const LEAST_MILLISECONDS: u64 = 100_000_000_000;

/// A time in the record's own representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timestamp {
    /// RFC 3339 text.
    Text(String),
    /// Milliseconds of Unix time.
    Milliseconds(u64),
}

impl Timestamp {
    pub(super) fn of(node: &Node<'_>) -> Option<Self> {
        match node {
            Node::Text(text) => Some(Timestamp::Text(text.to_string())),
            Node::Unsigned(number) => Some(Timestamp::Milliseconds(*number)),
            _ => None,
        }
    }

    /// Returns the time in Unix milliseconds, rounded down, or `None` if the date or time does not exist.
    pub fn milliseconds(&self) -> Option<i128> {
        match self {
            Timestamp::Text(text) => milliseconds(text),
            Timestamp::Milliseconds(number) => Some(i128::from(*number)),
        }
    }

    /// Returns whether both are the same point in time, to the millisecond, in any representation. Times that do not
    /// exist (30 February) are compared as text.
    pub(super) fn is_same_time(&self, other: &Timestamp) -> bool {
        match (self.milliseconds(), other.milliseconds()) {
            (Some(one), Some(other)) => one == other,
            _ => self == other,
        }
    }

    /// Returns the value in the record's JSON encoding.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Timestamp::Text(text) => text.as_str().into(),
            Timestamp::Milliseconds(number) => (*number).into(),
        }
    }
}

/// The fields of `YYYY-MM-DDThh:mm:ss[.f](Z|±hh:mm)`.
struct Parts<'a> {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    fraction: &'a str,
    /// Offset in minutes east of UTC.
    offset: i16,
}

/// Returns whether a text matches the CDDL's `date-time-regexp`.
pub(super) fn has_form(text: &str) -> bool {
    parts(text).is_some()
}

fn parts(text: &str) -> Option<Parts<'_>> {
    let (seconds, rest) = text.split_at_checked(19)?;
    let digits = shaped(seconds, b"0000-00-00T00:00:00")?;
    let number = |from: usize, to: usize| {
        digits[from..to].iter().fold(0i16, |sum, digit| sum * 10 + i16::from(digit - b'0'))
    };
    let two = |from: usize| number(from, from + 2) as i8;
    let end = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(end);
    let fraction = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => "",
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => digits,
        _ => return None,
    };
    let parts = Parts {
        year: number(0, 4),
        month: two(5),
        day: two(8),
        hour: two(11),
        minute: two(14),
        second: two(17),
        fraction,
        offset: offset(zone)?,
    };
    let fits = (1..=12).contains(&parts.month)
        && (1..=31).contains(&parts.day)
        && parts.hour < 24
        && parts.minute < 60
        && parts.second <= 60;
    fits.then_some(parts)
}

fn offset(zone: &str) -> Option<i16> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let digits = shaped(rest, b"00:00")?;
    let two = |from: usize| i16::from(digits[from] - b'0') * 10 + i16::from(digits[from + 1] - b'0');
    let (hours, minutes) = (two(0), two(3));
    let east = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
    Some(if sign == "-" { -east } else { east })
}

/// Returns the bytes of a text that has digits where the shape has 0, and otherwise equals the shape.
fn shaped<'a>(text: &'a str, shape: &[u8]) -> Option<&'a [u8]> {
    let fits = text.len() == shape.len()
        && text.bytes().zip(shape).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        });
    fits.then_some(text.as_bytes())
}

fn milliseconds(text: &str) -> Option<i128> {
    let parts = parts(text)?;
    let days = Date::new(parts.year, parts.month, parts.day).ok()?.duration_since(Date::constant(1970, 1, 1));
    // Unix time does not represent leap seconds.
    (parts.second < 60).then_some(())?;
    let minutes = i128::from(parts.hour) * 60 + i128::from(parts.minute) - i128::from(parts.offset);
    let seconds = i128::from(days.as_secs()) + minutes * 60 + i128::from(parts.second);
    let fraction = parts.fraction.bytes().chain(*b"000").take(3);
    Some(fraction.fold(seconds, |sum, digit| sum * 10 + i128::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pattern_of_the_cddl_matches_has_the_form() {
        for good in [
            "2026-02-01T12:00:00Z",
            "2026-02-30T23:59:60.123456789012Z",
            "0000-01-01T00:00:00+23:59",
            "9999-12-31T00:00:00.5-00:00",
        ] {
            assert!(has_form(good), "{good}");
        }
        for bad in [
            "",
            "2026-02-01",
            "2026-02-01T12:00:00",
            "2026-02-01t12:00:00Z",
            "2026-02-01T12:00:00z",
            "2026-02-01 12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-02-00T12:00:00Z",
            "2026-02-32T12:00:00Z",
            "2026-02-01T24:00:00Z",
            "2026-02-01T12:60:00Z",
            "2026-02-01T12:00:61Z",
            "2026-02-01T12:00:00.Z",
            "2026-02-01T12:00:00,5Z",
            "2026-02-01T12:00:00+24:00",
            "2026-02-01T12:00:00+1:00",
            "2026-02-01T12:00:00Zx",
            "x2026-02-01T12:00:00Z",
            "２026-02-01T12:00:00Z",
        ] {
            assert!(!has_form(bad), "{bad}");
        }
    }

    #[test]
    fn times_that_were_are_told_from_times_that_were_not() {
        assert_eq!(milliseconds("1970-01-01T00:00:01.5Z"), Some(1500));
        assert_eq!(milliseconds("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(milliseconds("1969-12-31T23:00:00-01:00"), Some(0));
        assert_eq!(milliseconds("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
        assert_eq!(milliseconds("2026-02-30T00:00:00Z"), None);
        assert_eq!(milliseconds("2026-12-31T23:59:60Z"), None);
    }
}
