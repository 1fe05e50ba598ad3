//! Reading V-13: meters are exact decimals. Compared with arithmetic digit by digit.

#![allow(clippy::unwrap_used)]

use decimal::{Decimal, FRACTION_DIGITS, NotDecimal, WHOLE_DIGITS};
use proptest::prelude::*;

const WHOLE: usize = WHOLE_DIGITS as usize;
const FRACTION: usize = FRACTION_DIGITS as usize;

fn decimal(text: &str) -> Decimal {
    Decimal::read(text).unwrap()
}

#[test]
fn v_13_three_times_a_tenth_is_three_tenths() {
    let tenth = decimal("0.1");
    let sum = tenth.checked_add(tenth).and_then(|sum| sum.checked_add(tenth)).unwrap();
    assert_eq!((sum, sum.to_string().as_str()), (decimal("0.3"), "0.3"));
    assert_eq!(sum.checked_sub(tenth), Some(decimal("0.2")));
}

#[test]
fn one_number_has_one_text() {
    for (text, canonical) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.00e7", "0"),
        ("0e999999999999999999999999", "0"),
        ("1.50", "1.5"),
        ("1e2", "100"),
        ("1E+2", "100"),
        ("120e-1", "12"),
        ("0.0012E3", "1.2"),
        ("1e-32", "0.00000000000000000000000000000001"),
        ("9007199254740993", "9007199254740993"),
        ("999999999999999999999999999999", "999999999999999999999999999999"),
        ("1e29", "100000000000000000000000000000"),
        ("0.000000000000000000000000000001e30", "1"),
        ("100000000000000000000000000000000000000e-10", "10000000000000000000000000000"),
    ] {
        assert_eq!(decimal(text).to_string(), canonical, "{text}");
        assert_eq!(decimal(canonical), decimal(text), "{text}");
    }
}

#[test]
fn v_13_what_is_no_number_is_told_from_what_is_below_zero_and_what_is_too_much() {
    for text in [
        "", "-", "NaN", "Infinity", "true", "\"1\"", "01", "00", "1.", ".5", "1e", "1e+", "+1", "1_0", " 1",
        "0x1", "1e1.5", "--1", "١",
    ] {
        assert_eq!(Decimal::read(text), Err(NotDecimal::NotANumber), "{text}");
    }
    for text in ["-1", "-0.1", "-1e-400", "-1e400"] {
        assert_eq!(Decimal::read(text), Err(NotDecimal::Negative), "{text}");
    }
    for text in ["1e30", "1e308", "1000000000000000000000000000000", "1e99999999999999999999"] {
        assert_eq!(Decimal::read(text), Err(NotDecimal::TooLarge), "{text}");
    }
    for text in ["1e-33", "5e-324", "0.000000000000000000000000000000001", "1e-99999999999999999999"] {
        assert_eq!(Decimal::read(text), Err(NotDecimal::TooFine), "{text}");
    }
}

#[test]
fn v_13_a_cost_never_gets_smaller_by_being_read() {
    let smallest = decimal("1e-32");
    for (text, read) in [
        ("0.1", (decimal("0.1"), true)),
        ("1e-99999999999999999999", (smallest, false)),
        ("1e-33", (smallest, false)),
        ("2.000000000000000000000000000000001", (decimal("2").checked_add(smallest).unwrap(), false)),
        ("1e308", (Decimal::MAX, false)),
    ] {
        assert_eq!(Decimal::read_rounding_up(text), Ok(read), "{text}");
    }
    assert_eq!(Decimal::read_rounding_up("-1"), Err(NotDecimal::Negative));
}

#[test]
fn sums_end_at_the_largest_and_differences_at_zero() {
    let one = Decimal::from(1);
    assert_eq!(Decimal::MAX.checked_add(decimal("1e-32")), None);
    assert_eq!(Decimal::MAX.saturating_add(one), Decimal::MAX);
    assert_eq!(Decimal::MAX.to_string().len(), 63);
    assert_eq!((one.checked_sub(decimal("1.1")), one.saturating_sub(decimal("1.1"))), (None, Decimal::ZERO));
}

#[test]
fn integers_are_told_apart() {
    assert_eq!(decimal("1e2").to_u64(), Some(100));
    assert_eq!((decimal("1.5").to_u64(), decimal("1e29").to_u64()), (None, None));
    assert!(decimal("1e29").is_whole() && !decimal("0.5").is_whole());
}

/// A number as its 62 digits: 30 before the point, 32 behind it.
type Digits = [u8; WHOLE + FRACTION];

/// Moves the point by writing zeros. None if the number does not fit.
fn oracle(whole: &str, fraction: &str, exponent: i32) -> Option<Digits> {
    let zeros = "0".repeat(usize::try_from(exponent.unsigned_abs()).unwrap());
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    if exponent >= 0 {
        fraction += &zeros;
        whole += &fraction.drain(..zeros.len()).collect::<String>();
    } else {
        whole = zeros.clone() + &whole;
        fraction = whole.split_off(whole.len() - zeros.len()) + &fraction;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let padded = format!("{whole:0>WHOLE$}{fraction:0<FRACTION$}");
    padded.into_bytes().iter().map(|digit| digit - b'0').collect::<Vec<_>>().try_into().ok()
}

fn text(digits: &Digits) -> String {
    let text: String = digits.iter().map(|digit| char::from(digit + b'0')).collect();
    let (whole, fraction) = text.split_at(WHOLE);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn sum(a: &Digits, b: &Digits) -> Option<Digits> {
    let mut sum = [0; WHOLE + FRACTION];
    let mut carry = 0;
    for at in (0..sum.len()).rev() {
        let digit = a[at] + b[at] + carry;
        (sum[at], carry) = (digit % 10, digit / 10);
    }
    (carry == 0).then_some(sum)
}

fn written() -> impl Strategy<Value = (String, String, i32)> {
    ("0|[1-9][0-9]{0,33}", "[0-9]{1,36}", -40..40i32)
}

fn number((whole, fraction, exponent): &(String, String, i32)) -> String {
    format!("{whole}.{fraction}e{exponent}")
}

proptest! {
    #[test]
    fn what_is_read_is_what_is_written(parts in written()) {
        let read = Decimal::read(&number(&parts)).ok().map(|read| read.to_string());
        prop_assert_eq!(read, oracle(&parts.0, &parts.1, parts.2).as_ref().map(text));
    }

    #[test]
    fn sums_and_differences_and_order_are_those_of_the_digits(a in written(), b in written()) {
        let (Ok(x), Ok(y)) = (Decimal::read(&number(&a)), Decimal::read(&number(&b))) else { return Ok(()) };
        let (a, b) = (oracle(&a.0, &a.1, a.2).unwrap(), oracle(&b.0, &b.1, b.2).unwrap());
        prop_assert_eq!(x.checked_add(y).map(|sum| sum.to_string()), sum(&a, &b).as_ref().map(text));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        match x.checked_sub(y) {
            Some(difference) => prop_assert_eq!(difference.checked_add(y), Some(x)),
            None => prop_assert!(a < b),
        }
    }

    #[test]
    fn a_cost_is_rounded_up_and_by_less_than_the_last_digit(parts in written()) {
        let (up, exact) = Decimal::read_rounding_up(&number(&parts)).unwrap();
        match Decimal::read(&number(&parts)) {
            Ok(read) => prop_assert_eq!((up, exact), (read, true)),
            Err(NotDecimal::TooLarge) => prop_assert_eq!((up, exact), (Decimal::MAX, false)),
            Err(error) => {
                prop_assert_eq!((error, exact), (NotDecimal::TooFine, false));
                prop_assert!(!up.is_zero());
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        let _ = Decimal::read_rounding_up(&text);
    }

    #[test]
    fn a_decimal_reads_back_from_its_own_text(parts in written()) {
        if let Ok(decimal) = Decimal::read(&number(&parts)) {
            let json = serde_json::to_string(&decimal).unwrap();
            prop_assert_eq!(serde_json::from_str::<Decimal>(&json).unwrap(), decimal);
        }
    }
}
