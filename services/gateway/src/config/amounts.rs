//! Amounts, by the digits that were written: `0.1` is a tenth, not the double next to it (V-13).

use std::collections::BTreeMap;

use super::file::Amount;
use super::read::Reader;
use crate::limits::{MAX_AMOUNT_BYTES, MAX_METERS};

/// Amounts by meter: decimal text, without sign, as `admission::decimal` reads it.
pub type Meters = BTreeMap<String, String>;

/// An amount: digits, perhaps a point and more digits, perhaps an exponent.
pub fn amount(reader: &mut Reader<'_>, key: &str, written: &Amount) -> Option<String> {
    let text = match written.get_ref() {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(_) | toml::Value::Float(_) => reader.source(&written.span()).replace('_', ""),
        _ => String::new(),
    };
    let text = text.strip_prefix('+').unwrap_or(&text).to_owned();
    if is_amount(&text) {
        return Some(text);
    }
    reader.mistake(Some(written.span()), key, "an amount is a decimal number from 0 on: 3, 0.25, \"1e3\"");
    None
}

/// Amounts by meter.
pub fn meters(reader: &mut Reader<'_>, key: &str, written: &BTreeMap<String, Amount>) -> Meters {
    if written.len() > MAX_METERS {
        let span = written.values().next().map(toml::Spanned::span);
        reader.mistake(span, key, format!("no more than {MAX_METERS} meters"));
    }
    let read = written.iter().filter_map(|(meter, value)| {
        let text = amount(reader, &format!("{key}.{meter}"), value)?;
        Some((meter.clone(), text))
    });
    read.collect()
}

/// The grammar of a JSON number without its sign.
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
