//! Detection of numbers that a double cannot represent as written.
//!
//! JCS writes every number as a double (RFC 8785, section 3.2.2.3). So 9007199254740993 and 9007199254740992 have the
//! same canonical form, and a signature over it covers both. A signer of JSON that is not in canonical form yet checks
//! it first with [`is_exact`] (VAP, reading V-22).
//!
//! Not here: the position of a number in a text ([`CheckedJson`](crate::json::CheckedJson)), and the numbers that a
//! profile allows.

/// The largest magnitude of an integer that all JSON parsers read exactly (RFC 7493, section 2.2).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Returns `true` if two JSON numbers are equal in value: `1e2` is `100`, and `-0` is `0`. Exact for numbers of any
/// size; a number with an exponent beyond 63 bits only equals its own text.
pub fn same(a: &str, b: &str) -> bool {
    let magnitude = |number| NormalizedDecimal::read(number).map(NormalizedDecimal::without_sign_of_zero);
    a == b || magnitude(a).is_some_and(|a| magnitude(b) == Some(a))
}

/// Returns `true` if the canonical form of the number is the same number: the shortest notation of the nearest double
/// loses no digits, and the number is not a negative zero.
pub fn is_exact(number: &str) -> bool {
    let Ok(double) = number.parse::<f64>() else { return false };
    match (NormalizedDecimal::read(number), NormalizedDecimal::read(&format!("{double:e}"))) {
        (Some(written), Some(held)) => written == held && !(written.digits.is_empty() && written.negative),
        _ => false,
    }
}

/// Returns `true` if all parsers read the same number: an integer within ±(2^53 - 1), or another number of which a
/// double loses no digits. Negative zero counts as zero.
pub fn is_unambiguous(number: &str) -> bool {
    let is_integer = !number.contains(['.', 'e', 'E']);
    match is_integer {
        true => number.trim_start_matches('-').parse().is_ok_and(|whole: u64| whole <= MAX_INTEGER),
        false => is_zero(number) || is_exact(number),
    }
}

fn is_zero(number: &str) -> bool {
    NormalizedDecimal::read(number).is_some_and(|decimal| decimal.digits.is_empty())
}

/// The number ±0.digits × 10^exponent, without leading or trailing zeros; zero has no digits.
#[derive(PartialEq)]
struct NormalizedDecimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl NormalizedDecimal {
    fn without_sign_of_zero(self) -> NormalizedDecimal {
        NormalizedDecimal { negative: self.negative && !self.digits.is_empty(), ..self }
    }

    fn read(number: &str) -> Option<NormalizedDecimal> {
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
            return Some(NormalizedDecimal { negative, digits, exponent: 0 });
        }
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let exponent = power.parse::<i64>().ok()?.checked_add(point)?;
        Some(NormalizedDecimal { negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
