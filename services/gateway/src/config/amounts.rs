//! Decimal amounts, read from the digits in the file: `0.1` is exactly a tenth, not the nearest `f64` (V-13).

use std::collections::BTreeMap;

use admission::limits::METER_PREFIX;
use admission::session::Meters;
use decimal::Decimal;
use serving::config_file::Amount;

use super::reader::GatewayReader;
use crate::limits::{MAX_AMOUNT_BYTES, MAX_METERS};

/// Reads a non-negative decimal amount: digits, an optional fraction, an optional exponent. Reports a mistake and
/// returns `None` if it is none.
pub fn amount(reader: &mut GatewayReader<'_>, key: &str, written: &Amount) -> Option<Decimal> {
    let text = match written.get_ref() {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(_) | toml::Value::Float(_) => reader.source(&written.span()).replace('_', ""),
        _ => String::new(),
    };
    let text = text.strip_prefix('+').unwrap_or(&text);
    let read = if is_amount(text) { Decimal::read(text).ok() } else { None };
    if read.is_none() {
        let why = "an amount is a decimal number from 0 on: 3, 0.25, \"1e3\"";
        reader.mistake(Some(written.span()), key, why);
    }
    read
}

/// Reads amounts by meter.
pub fn meters(reader: &mut GatewayReader<'_>, key: &str, written: &BTreeMap<String, Amount>) -> Meters {
    if written.len() > MAX_METERS {
        let span = written.values().next().map(toml::Spanned::span);
        reader.mistake(span, key, format!("no more than {MAX_METERS} meters"));
    }
    let mut meters = Meters::default();
    for (meter, value) in written {
        let key = format!("{key}.{meter}");
        if meter.starts_with(METER_PREFIX) || meter.is_empty() || meter.len() > vap::limits::MAX_NAME {
            let why = format!("a meter has a name that does not begin with {METER_PREFIX}");
            reader.mistake(Some(value.span()), &key, why);
        } else if let Some(amount) = amount(reader, &key, value) {
            meters.set(meter, amount);
        }
    }
    meters
}

/// Checks the grammar of a JSON number without its sign.
fn is_amount(text: &str) -> bool {
    text.len() <= MAX_AMOUNT_BYTES
        && !text.contains(char::is_whitespace)
        && text.starts_with(|first: char| first.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_amount;

    #[test]
    fn an_amount_is_a_number_of_json_from_zero_on() {
        for good in ["0", "3", "0.25", "1e3", "1E-3", "18446744073709551616"] {
            assert!(is_amount(good), "{good}");
        }
        for bad in ["", "-1", "+1", ".5", "5.", "01", "nan", "inf", "0x10", "1 ", "1e400", "a"] {
            assert!(!is_amount(bad), "{bad}");
        }
    }
}
