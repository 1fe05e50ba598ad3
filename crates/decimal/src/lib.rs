//! Exact decimals of at least zero, for meters (reading V-13): 0.1 + 0.1 + 0.1 is 0.3.
//!
//! A number has up to 30 digits before the decimal point and 32 after it, so its text fits into the 64 characters of a
//! record on the log. That exceeds the precision of a double. [`NotDecimal`] distinguishes a number beyond these limits
//! from a text that is not a number; the parser of a cost rounds such a number up.
//!
//! Not here: the comparison of numbers of any size (`exact` in the crate `admission`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum digits before the decimal point.
pub const WHOLE_DIGITS: u32 = 30;
/// Maximum digits after the decimal point.
pub const FRACTION_DIGITS: u32 = 32;

const WHOLE_END: u128 = 10u128.pow(WHOLE_DIGITS);
const FRACTION_END: u128 = 10u128.pow(FRACTION_DIGITS);

/// A decimal number of at least zero, held exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    /// Part before the point, below [`WHOLE_END`]. First field, so that the derived order is the numeric order.
    whole: u128,
    /// Part after the point in units of 10^-32, below [`FRACTION_END`].
    fraction: u128,
}

/// The error for a text that is not a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDecimal {
    /// The text is not a JSON number.
    #[error("not a number")]
    NotANumber,
    /// The number is below zero.
    #[error("below zero")]
    Negative,
    /// The number has more than [`WHOLE_DIGITS`] digits before the point.
    #[error("more than {WHOLE_DIGITS} digits before the point")]
    TooLarge,
    /// The number has more than [`FRACTION_DIGITS`] digits after the point.
    #[error("more than {FRACTION_DIGITS} digits behind the point")]
    TooFine,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { whole: 0, fraction: 0 };
    /// The largest value; sums that would exceed it saturate here.
    pub const MAX: Decimal = Decimal { whole: WHOLE_END - 1, fraction: FRACTION_END - 1 };

    /// Parses the text of a JSON number, with or without an exponent.
    ///
    /// # Errors
    /// [`NotDecimal`] if the text is not a number, is below zero or has too many digits.
    pub fn read(number: &str) -> Result<Decimal, NotDecimal> {
        match read(number)? {
            (decimal, true) => Ok(decimal),
            (_, false) => Err(NotDecimal::TooFine),
        }
    }

    /// Parses like [`read`](Self::read), but rounds up excess digits after the point and saturates at
    /// [`MAX`](Self::MAX). For costs, which must not become smaller by rounding. The flag is `true` if the number is
    /// exact.
    pub fn read_rounding_up(number: &str) -> Result<(Decimal, bool), NotDecimal> {
        match read(number) {
            Ok((decimal, true)) => Ok((decimal, true)),
            Ok((decimal, false)) => Ok((decimal.saturating_add(Decimal { whole: 0, fraction: 1 }), false)),
            Err(NotDecimal::TooLarge) => Ok((Decimal::MAX, false)),
            Err(error) => Err(error),
        }
    }

    /// Returns `true` if the number is zero.
    pub const fn is_zero(self) -> bool {
        self.whole == 0 && self.fraction == 0
    }

    /// Returns the sum, or `None` if it exceeds [`MAX`](Self::MAX).
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let fraction = self.fraction + other.fraction;
        let carry = u128::from(fraction >= FRACTION_END);
        let whole = self.whole + other.whole + carry;
        let sum = Decimal { whole, fraction: fraction - carry * FRACTION_END };
        (whole < WHOLE_END).then_some(sum)
    }

    /// Returns the sum, or [`MAX`](Self::MAX) if it would exceed it.
    pub fn saturating_add(self, other: Decimal) -> Decimal {
        self.checked_add(other).unwrap_or(Decimal::MAX)
    }

    /// Returns the difference, or `None` if it is below zero.
    pub fn checked_sub(self, other: Decimal) -> Option<Decimal> {
        let borrow = u128::from(self.fraction < other.fraction);
        let whole = self.whole.checked_sub(other.whole)?.checked_sub(borrow)?;
        Some(Decimal { whole, fraction: self.fraction + borrow * FRACTION_END - other.fraction })
    }

    /// Returns the difference, or zero if it would be below zero.
    pub fn saturating_sub(self, other: Decimal) -> Decimal {
        self.checked_sub(other).unwrap_or(Decimal::ZERO)
    }

    /// Returns `true` if the number has no digits after the point.
    pub const fn is_whole(self) -> bool {
        self.fraction == 0
    }

    /// Returns the number as an integer, or `None` if it has a fraction or exceeds `u64`.
    pub fn to_u64(self) -> Option<u64> {
        self.is_whole().then(|| self.whole.try_into().ok()).flatten()
    }

    /// Returns the nearest double. For scores only: ceilings are compared exactly.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::MAX)
    }
}

impl From<u64> for Decimal {
    fn from(whole: u64) -> Decimal {
        Decimal { whole: whole.into(), fraction: 0 }
    }
}

/// Parses a number and returns it with `true`, or with `false` if digits after the point were cut off.
fn read(number: &str) -> Result<(Decimal, bool), NotDecimal> {
    let (negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !is_digits(whole)
        || (whole.len() > 1 && whole.starts_with('0'))
        || !is_digits(fraction)
        || !is_digits(power)
    {
        return Err(NotDecimal::NotANumber);
    }
    let digits = [whole, fraction].concat();
    if digits.bytes().all(|digit| digit == b'0') {
        return Ok((Decimal::ZERO, true));
    }
    match negative {
        true => Err(NotDecimal::Negative),
        false => shifted(&digits, whole.len(), exponent),
    }
}

/// Applies the exponent to the digits by moving the decimal point. The digits must not be all zeros.
fn shifted(digits: &str, point: usize, exponent: &str) -> Result<(Decimal, bool), NotDecimal> {
    let leading = digits.bytes().take_while(|digit| *digit == b'0').count();
    let digits = digits[leading..].trim_end_matches('0');
    // An exponent too large for `i64` dominates any number of digits that a text can have.
    let exponent: i64 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
    let point = length(point).saturating_sub(length(leading)).saturating_add(exponent);
    if point > i64::from(WHOLE_DIGITS) {
        return Err(NotDecimal::TooLarge);
    }
    let exact = length(digits.len()).saturating_sub(point) <= i64::from(FRACTION_DIGITS);
    let digit = |at: i64| {
        usize::try_from(at).ok().and_then(|at| digits.as_bytes().get(at)).map_or(0, |digit| digit - b'0')
    };
    let take = |from: i64, count: u32| {
        (from..from.saturating_add(i64::from(count)))
            .fold(0, |number, at| number * 10 + u128::from(digit(at)))
    };
    let whole = take(point.saturating_sub(i64::from(WHOLE_DIGITS)), WHOLE_DIGITS);
    Ok((Decimal { whole, fraction: take(point, FRACTION_DIGITS) }, exact))
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Canonical notation: no exponent, and no leading or trailing zeros that can be omitted.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fraction == 0 {
            return write!(f, "{}", self.whole);
        }
        let fraction = format!("{:032}", self.fraction);
        write!(f, "{}.{}", self.whole, fraction.trim_end_matches('0'))
    }
}

impl FromStr for Decimal {
    type Err = NotDecimal;

    fn from_str(text: &str) -> Result<Decimal, NotDecimal> {
        Decimal::read(text)
    }
}

/// Serialized as a text, since many JSON parsers read a number as a double.
impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Decimal::read(&text).map_err(serde::de::Error::custom)
    }
}
