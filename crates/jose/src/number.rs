//! Detection of numbers that a double cannot represent as written.
//!
//! JCS writes every number as a double (RFC 8785, section 3.2.2.3). So 9007199254740993 and 9007199254740992 have the
//! same canonical form, and a signature over it covers both. A signer of JSON that is not in canonical form yet checks
//! it here first (VAP, reading V-22).
//!
//! Not here: the numbers that a profile allows.

use crate::json::Checked;

/// The largest magnitude of an integer that all JSON parsers read exactly (RFC 7493, section 2.2).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Returns the byte offset of the first number whose canonical form is a different number: it loses digits, becomes
/// zero, or is a negative zero. `None` if there is none.
pub fn first_inexact(text: Checked<'_>) -> Option<usize> {
    first_number(text, |number| !is_exact(number))
}

/// Returns the byte offset of the first number that parsers may read differently: an integer beyond 2^53 - 1 in either
/// direction, or a number of which a double loses digits. Negative zero counts as zero. `None` if there is none.
pub fn first_ambiguous(text: Checked<'_>) -> Option<usize> {
    first_number(text, |number| {
        let is_integer = !number.contains(['.', 'e', 'E']);
        let digits = number.trim_start_matches('-');
        let is_zero = Decimal::read(number).is_some_and(|decimal| decimal.digits.is_empty());
        match is_integer {
            true => !digits.parse().is_ok_and(|whole: u64| whole <= MAX_INTEGER),
            false => !is_zero && !is_exact(number),
        }
    })
}

/// Returns the byte offset of the first number for which `is_sought` is `true`.
fn first_number(text: Checked<'_>, is_sought: impl Fn(&str) -> bool) -> Option<usize> {
    let bytes = text.text().as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| is_number_byte(**byte)).count();
                if is_sought(&text.text()[at..end]) {
                    return Some(at);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns `true` if two JSON numbers are equal in value: `1e2` is `100`, and `-0` is `0`. Exact for numbers of any
/// size; a number with an exponent beyond 63 bits only equals its own text.
pub fn same(a: &str, b: &str) -> bool {
    let magnitude = |number| Decimal::read(number).map(Decimal::without_sign_of_zero);
    a == b || magnitude(a).is_some_and(|a| magnitude(b) == Some(a))
}

fn after_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

const fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns `true` if the shortest notation of the nearest double is the same decimal number.
fn is_exact(number: &str) -> bool {
    let Ok(double) = number.parse::<f64>() else { return false };
    match (Decimal::read(number), Decimal::read(&format!("{double:e}"))) {
        (Some(written), Some(held)) => written == held && !(written.digits.is_empty() && written.negative),
        _ => false,
    }
}

/// The number ±0.digits × 10^exponent, without leading or trailing zeros; zero has no digits.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn without_sign_of_zero(self) -> Decimal {
        Decimal { negative: self.negative && !self.digits.is_empty(), ..self }
    }

    fn read(number: &str) -> Option<Decimal> {
        let (negative, number) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_start_matches('0');
        let leading = all.len() - digits.len();
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Decimal { negative, digits, exponent: 0 });
        }
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let exponent = power.parse::<i64>().ok()?.checked_add(point)?;
        Some(Decimal { negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, check};

    fn inexact(text: &str) -> Option<usize> {
        first_inexact(check(text.as_bytes(), Limits::default()).unwrap())
    }

    #[test]
    fn an_integer_beyond_2_53_is_ambiguous_and_so_are_digits_that_a_double_loses() {
        let ambiguous = |text: &str| first_ambiguous(check(text.as_bytes(), Limits::default()).unwrap());
        for text in [
            "9007199254740992",
            "-9007199254740993",
            "18446744073709551616",
            "0.1000000000000000055",
            "9007199254740993.0",
            "1e-400",
            r#"{"a":[{"b":9007199254740993}]}"#,
        ] {
            assert!(ambiguous(text).is_some(), "{text}");
        }
        for text in
            ["9007199254740991", "-9007199254740991", "-0", "-0.0", "0.1", "1e20", r#""9007199254740993""#]
        {
            assert_eq!(ambiguous(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_a_double_holds_as_written_pass() {
        for text in [
            "0",
            "-1",
            "0.1",
            "1.50",
            "100",
            "1e2",
            "1E+2",
            "9007199254740992",
            "5e-324",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "0e999999999999999999999",
            "0.0",
            "333333333.3333333",
        ] {
            assert_eq!(inexact(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_change_on_the_way_are_found_where_they_stand() {
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "-0",
            "1152921504606846976",
            "-0.0",
            "1e-400",
            "0.1000000000000000055",
            "123456789012345678901",
            "333333333.33333329",
        ] {
            assert_eq!(inexact(text), Some(0), "{text}");
            assert_eq!(inexact(&format!("[1,{{\"9007199254740993\\\"\":{text}}}]")), Some(25), "{text}");
        }
    }

    #[test]
    fn the_same_number_has_many_spellings_and_no_other_number_has_them() {
        let zeros = [&format!("0.{}", "0".repeat(400)), "0", "-0", "0e9", "-0.0e-5"];
        let hundreds = ["100", "1e2", "1E+2", "100.0", "0.1e3", "1000e-1"];
        let large = ["9007199254740993", "9007199254740993.0", "9.007199254740993e15"];
        let other = ["9007199254740992", "-100", "100.00000000000000000000001", "1e-400", "1e-401"];
        let classes: [&[&str]; 3] = [&zeros, &hundreds, &large];
        for class in classes {
            for a in class {
                assert!(class.iter().all(|b| same(a, b)), "{a}");
                assert!(!other.iter().any(|b| same(a, b)), "{a}");
            }
        }
        assert!(!same(zeros[0], hundreds[0]) && !same(hundreds[0], large[0]));
        assert!(same("1e-99999999999999999999", "1e-99999999999999999999"));
    }

    #[test]
    fn digits_inside_strings_are_no_numbers() {
        assert_eq!(inexact(r#"{"9007199254740993":"9007199254740993 \" -0"}"#), None);
    }
}
