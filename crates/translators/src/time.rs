//! Times of native entries as timestamps of a record (section 3.1: RFC 3339).

use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

/// The draft's `date-time-regexp`, which must match the whole text.
static DATE_TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):([0-5][0-9])",
        r":(60|[0-5][0-9])([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    ))
    .ok()
});

/// The smallest number that is read as milliseconds since 1970; a smaller one could be seconds.
const LEAST_MILLISECONDS: i64 = 100_000_000_000;

/// Returns a native time as RFC 3339: a text in this form as it is, a number as milliseconds since 1970.
pub(crate) fn canonical(time: &Value) -> Option<String> {
    match time {
        Value::String(text) => DATE_TIME.as_ref()?.is_match(text).then(|| text.clone()),
        Value::Number(number) => of_milliseconds(number.as_i64()?),
        _ => None,
    }
}

fn of_milliseconds(milliseconds: i64) -> Option<String> {
    let time =
        Timestamp::from_millisecond(milliseconds).ok().filter(|_| milliseconds >= LEAST_MILLISECONDS)?;
    Some(format!("{time:.3}"))
}

/// The earliest and the latest of some times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    first: Option<(Timestamp, String)>,
    last: Option<(Timestamp, String)>,
}

impl Span {
    /// Widens the span. A value that is not a time has no effect.
    pub fn include(&mut self, time: Option<&Value>) {
        let Some(text) = time.and_then(canonical) else { return };
        let Ok(instant) = text.parse::<Timestamp>() else { return };
        if self.first.as_ref().is_none_or(|(first, _)| instant < *first) {
            self.first = Some((instant, text.clone()));
        }
        if self.last.as_ref().is_none_or(|(last, _)| instant > *last) {
            self.last = Some((instant, text));
        }
    }

    pub fn start(&self) -> Option<String> {
        self.first.as_ref().map(|(_, text)| text.clone())
    }

    pub fn end(&self) -> Option<String> {
        self.last.as_ref().map(|(_, text)| text.clone())
    }
}
