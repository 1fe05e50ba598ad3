//! Exact decimals of at least zero, for meters (reading V-13): 0.1 + 0.1 + 0.1 is 0.3.
//!
//! A number has up to 30 digits before the point and 32 behind it, so its text fits what a record on the log may hold (64
//! characters). That is more than any double says; what lies beyond is told apart from what is no number ([`NotDecimal`]),
//! and the reader of a cost rounds it up.
//!
//! Not here: comparing numbers of any size, which `exact` does.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Digits before the point.
pub const WHOLE_DIGITS: u32 = 30;
/// Digits behind the point.
pub const FRACTION_DIGITS: u32 = 32;

const WHOLE_END: u128 = 10u128.pow(WHOLE_DIGITS);
const FRACTION_END: u128 = 10u128.pow(FRACTION_DIGITS);

/// A decimal number of at least zero, held exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    /// Below [`WHOLE_END`]. Before the fraction, so that the derived order is the numbers' order.
    whole: u128,
    /// In units of 10^-32, below [`FRACTION_END`].
    fraction: u128,
}

/// Why a text is no [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDecimal {
    /// It is not a number as JSON writes them.
    #[error("not a number")]
    NotANumber,
    /// It is below zero.
    #[error("below zero")]
    Negative,
    /// It has more digits before the point than are kept.
    #[error("more than {WHOLE_DIGITS} digits before the point")]
    TooLarge,
    /// It has more digits behind the point than are kept.
    #[error("more than {FRACTION_DIGITS} digits behind the point")]
    TooFine,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { whole: 0, fraction: 0 };
    /// The largest: what every sum that would be larger is taken for.
    pub const MAX: Decimal = Decimal { whole: WHOLE_END - 1, fraction: FRACTION_END - 1 };

    /// Reads a JSON number's text, exponent and all.
    pub fn read(number: &str) -> Result<Decimal, NotDecimal> {
        match read(number)? {
            (decimal, true) => Ok(decimal),
            (_, false) => Err(NotDecimal::TooFine),
        }
    }

    /// The same, with what is too fine rounded up and what is too large taken for [`MAX`](Self::MAX): for costs, which
    /// must not get smaller on the way. Also says whether the number is exact.
    pub fn read_rounding_up(number: &str) -> Result<(Decimal, bool), NotDecimal> {
        match read(number) {
            Ok((decimal, true)) => Ok((decimal, true)),
            Ok((decimal, false)) => Ok((decimal.saturating_add(Decimal { whole: 0, fraction: 1 }), false)),
            Err(NotDecimal::TooLarge) => Ok((Decimal::MAX, false)),
            Err(error) => Err(error),
        }
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.whole == 0 && self.fraction == 0
    }

    /// The sum, if it is not larger than [`MAX`](Self::MAX).
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let fraction = self.fraction + other.fraction;
        let carry = u128::from(fraction >= FRACTION_END);
        let whole = self.whole + other.whole + carry;
        let sum = Decimal { whole, fraction: fraction - carry * FRACTION_END };
        (whole < WHOLE_END).then_some(sum)
    }

    /// The sum, or [`MAX`](Self::MAX).
    pub fn saturating_add(self, other: Decimal) -> Decimal {
        self.checked_add(other).unwrap_or(Decimal::MAX)
    }

    /// The difference, if it is not below zero.
    pub fn checked_sub(self, other: Decimal) -> Option<Decimal> {
        let borrow = u128::from(self.fraction < other.fraction);
        let whole = self.whole.checked_sub(other.whole)?.checked_sub(borrow)?;
        Some(Decimal { whole, fraction: self.fraction + borrow * FRACTION_END - other.fraction })
    }

    /// The difference, or zero.
    pub fn saturating_sub(self, other: Decimal) -> Decimal {
        self.checked_sub(other).unwrap_or(Decimal::ZERO)
    }

    /// Whether nothing is behind the point.
    pub const fn is_whole(self) -> bool {
        self.fraction == 0
    }

    /// The number as an integer, if it is one that fits.
    pub fn to_u64(self) -> Option<u64> {
        self.is_whole().then(|| self.whole.try_into().ok()).flatten()
    }

    /// The nearest double: for scores, never for a ceiling.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::MAX)
    }
}

impl From<u64> for Decimal {
    fn from(whole: u64) -> Decimal {
        Decimal { whole: whole.into(), fraction: 0 }
    }
}

/// The number, and whether nothing was cut off behind the point.
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

/// The digits with the point moved by the exponent. They are not all zeros.
fn shifted(digits: &str, point: usize, exponent: &str) -> Result<(Decimal, bool), NotDecimal> {
    let leading = digits.bytes().take_while(|digit| *digit == b'0').count();
    let digits = digits[leading..].trim_end_matches('0');
    // An exponent that is too long for an integer outweighs any text that can be read.
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

/// Canonical: no exponent, no zero that could be left out.
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

/// As text: a JSON number would be read as a double somewhere.
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
