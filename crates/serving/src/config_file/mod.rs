//! Configuration files of daemons, in TOML. All mistakes in a file are reported together, with their lines.
//!
//! A daemon declares the names of its settings as a structure that [`parse`] fills; a value whose mistakes have a line is
//! a [`Spanned`], such as [`SpannedText`]. A [`ConfigReader`] converts the values: it knows their units
//! ([`units`](crate::units)), keeps them within the bounds that its caller names, and collects the mistakes.
//!
//! Not here: the settings of the transparency service, which are also flags and variables (`tabellion`).

mod mistake;

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Bound, Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml::Spanned;
use url::Url;

use crate::collector;
use crate::problem::{self, ErrorDocumentation};
use crate::units::{parse_duration, parse_size};
pub use mistake::{Mistake, Mistakes};

/// A text with its position in the file.
pub type SpannedText = Spanned<String>;
/// A value with its position in the file: a size, or an amount whose digits are read from the source text.
pub type Amount = Spanned<toml::Value>;

/// Parses a file into a structure of its settings.
///
/// # Errors
/// The first syntax error, unknown name, missing setting or value of a wrong type, with its line only: values and the text around
/// them may contain secrets.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Mistakes> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        Mistakes::one(line, "config", without_value(error.message().trim()))
    })
}

/// A message of serde without the value that it quotes if the value is of a wrong type.
fn without_value(message: &str) -> &str {
    let quotes_value = ["invalid type: ", "invalid value: "].iter().any(|begin| message.starts_with(begin));
    match message.rfind("expected ") {
        Some(expected) if quotes_value => &message[expected..],
        _ => message,
    }
}

/// A reader of values, which collects the mistakes.
pub struct ConfigReader<'a> {
    text: &'a str,
    folder: &'a Path,
    table: Option<String>,
    mistakes: Vec<Mistake>,
}

impl<'a> ConfigReader<'a> {
    /// A reader of this text; relative paths are relative to the folder.
    pub fn new(text: &'a str, folder: &'a Path) -> Self {
        Self { text, folder, table: None, mistakes: Vec::new() }
    }

    /// Returns the configuration that was read, or all mistakes, in the order of their lines.
    ///
    /// # Errors
    /// [`Mistakes`], if there are any or `config` is `None`.
    pub fn finish<T>(mut self, config: Option<T>) -> Result<T, Mistakes> {
        match config {
            Some(config) if self.mistakes.is_empty() => Ok(config),
            _ => {
                self.mistakes.sort_by_key(|mistake| mistake.line);
                Err(Mistakes(self.mistakes))
            }
        }
    }

    /// Reads the settings of a table of which there are several; mistakes name it.
    pub fn within<T>(&mut self, table: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.table.replace(table.to_owned());
        let value = read(self);
        self.table = outer;
        value
    }

    /// A path, resolved against the file's folder.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// An optional path, resolved against the file's folder.
    pub fn relative(&self, path: Option<PathBuf>) -> Option<PathBuf> {
        path.map(|path| self.path(path))
    }

    /// A socket address.
    pub fn address(&mut self, key: &str, text: &SpannedText) -> Option<SocketAddr> {
        match text.get_ref().parse() {
            Ok(address) => Some(address),
            Err(_) => self.wrong(text, key, "an address is written like 127.0.0.1:7400"),
        }
    }

    /// An http or https URL. A mistake does not quote it, because it may contain a password.
    pub fn http(&mut self, key: &str, text: &SpannedText) -> Option<Url> {
        match Url::parse(text.get_ref()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Some(url),
            Ok(_) => self.wrong(text, key, "an http or https URL is needed here"),
            Err(error) => self.wrong(text, key, error.to_string()),
        }
    }

    /// The address of an OpenTelemetry collector, the setting [`collector::SETTING`].
    pub fn collector(&mut self, text: Option<&SpannedText>) -> Option<Url> {
        self.parsed(collector::SETTING, text, collector::parse)
    }

    /// The address of the documentation of errors, the setting [`problem::SETTING`].
    pub fn error_documentation(&mut self, text: Option<&SpannedText>) -> ErrorDocumentation {
        self.parsed(problem::SETTING, text, ErrorDocumentation::parse).unwrap_or_default()
    }

    fn parsed<T, E: Display>(
        &mut self,
        key: &str,
        text: Option<&SpannedText>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = text?;
        match parse(text.get_ref()) {
            Ok(value) => Some(value),
            Err(error) => self.wrong(text, key, error.to_string()),
        }
    }

    /// A duration within bounds.
    pub fn duration(
        &mut self,
        key: &str,
        text: Option<&SpannedText>,
        bounds: impl RangeBounds<Duration>,
    ) -> Option<Duration> {
        let text = text?;
        let read = parse_duration(text.get_ref());
        match read.filter(|length| bounds.contains(length)) {
            Some(length) => Some(length),
            None => {
                let bounds = in_words(&bounds, |length| format!("{length:?}"));
                let form = "a duration is written like 250ms, 90s, 15m, 2h or 1d";
                self.wrong(text, key, format!("{:?}: {form}{bounds}", text.get_ref()))
            }
        }
    }

    /// A size in bytes, within bounds.
    pub fn size(
        &mut self,
        key: &str,
        written: Option<&Amount>,
        bounds: impl RangeBounds<u64>,
    ) -> Option<u64> {
        let written = written?;
        let bytes = match written.get_ref() {
            toml::Value::Integer(number) => u64::try_from(*number).ok(),
            toml::Value::String(text) => parse_size(text),
            _ => None,
        };
        let bytes = bytes.filter(|bytes| bounds.contains(bytes));
        if bytes.is_none() {
            let bounds = in_words(&bounds, |bytes| format!("{bytes} bytes"));
            let form = "a size is written like 1048576, \"4MiB\" or \"1GiB\"";
            self.mistake(Some(written.span()), key, format!("{form}{bounds}"));
        }
        bytes
    }

    /// A number within bounds.
    pub fn number<T: Copy + Display + PartialOrd>(
        &mut self,
        key: &str,
        given: Option<&Spanned<T>>,
        bounds: impl RangeBounds<T>,
    ) -> Option<T> {
        let (span, number) = given.map(|given| (given.span(), *given.get_ref()))?;
        if bounds.contains(&number) {
            return Some(number);
        }
        let bounds = in_words(&bounds, T::to_string);
        self.mistake(Some(span), key, format!("{number} is not possible here{bounds}"));
        None
    }

    /// One of a few words; the first one is the default.
    pub fn chosen<T: Copy>(&mut self, key: &str, text: Option<&SpannedText>, words: &[(&str, T)]) -> T {
        let usual = words[0].1;
        let Some(text) = text else { return usual };
        match words.iter().find(|(word, _)| word == text.get_ref()) {
            Some((_, value)) => *value,
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.mistake(Some(text.span()), key, format!("one of {}", words.join(", ")));
                usual
            }
        }
    }

    /// The source text at this range of the file.
    pub fn source(&self, span: &Range<usize>) -> String {
        self.text.get(span.clone()).unwrap_or_default().trim().to_owned()
    }

    /// Reports a mistake, and returns `None` for the value.
    pub fn wrong<T, V>(&mut self, at: &Spanned<V>, key: &str, why: impl Into<String>) -> Option<T> {
        self.mistake(Some(at.span()), key, why);
        None
    }

    /// Reports a mistake.
    pub fn mistake(&mut self, span: Option<Range<usize>>, key: &str, why: impl Into<String>) {
        let line = span.map(|span| line_of(self.text, span.start));
        let key = match &self.table {
            Some(table) => format!("{table}: {key}"),
            None => key.to_owned(),
        };
        self.mistakes.push(Mistake { line, key, why: why.into() });
    }
}

/// The number of the line at this offset.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The end of a sentence that names bounds; empty if there are none.
fn in_words<T>(bounds: &impl RangeBounds<T>, show: impl Fn(&T) -> String) -> String {
    let named = |bound: Bound<&T>, included: &str, excluded: &str| match bound {
        Bound::Included(value) => Some(format!("{included} {}", show(value))),
        Bound::Excluded(value) => Some(format!("{excluded} {}", show(value))),
        Bound::Unbounded => None,
    };
    let least = named(bounds.start_bound(), "at least", "more than");
    let most = named(bounds.end_bound(), "at most", "less than");
    match (least, most) {
        (Some(least), Some(most)) => format!("; {least}, {most}"),
        (Some(bound), None) | (None, Some(bound)) => format!("; {bound}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        every: Option<SpannedText>,
        workers: Option<Spanned<usize>>,
        bytes: Option<Amount>,
    }

    fn read(text: &str) -> Result<(Duration, usize, u64), String> {
        let read = || {
            let file: File = parse(text)?;
            let mut reader = ConfigReader::new(text, Path::new("/etc"));
            let every = reader.duration("every", file.every.as_ref(), Duration::from_secs(1)..);
            let workers = reader.number("workers", file.workers.as_ref(), 1..=8);
            let bytes =
                reader.within("log a", |reader| reader.size("bytes", file.bytes.as_ref(), ..=1 << 20));
            let config = (every.unwrap_or_default(), workers.unwrap_or_default(), bytes.unwrap_or_default());
            reader.finish(Some(config))
        };
        read().map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn values_within_their_bounds_are_read() {
        let (every, workers, bytes) = read("every = \"15m\"\nworkers = 8\nbytes = \"1MiB\"").unwrap();
        assert_eq!((every, workers, bytes), (Duration::from_secs(900), 8, 1 << 20));
        assert_eq!(read("").unwrap(), (Duration::ZERO, 0, 0));
    }

    #[test]
    fn all_mistakes_are_reported_in_the_order_of_their_lines() {
        let why = read("bytes = \"2MiB\"\nevery = \"10ms\"\nworkers = 9").unwrap_err();
        let lines: Vec<&str> = why.split("; line").collect();
        assert!(lines[0].starts_with("line 1: log a: bytes: "), "{why}");
        assert!(lines[0].ends_with("at most 1048576 bytes"), "{why}");
        assert!(lines[1].starts_with(" 2: every: \"10ms\"") && lines[1].ends_with("at least 1s"), "{why}");
        assert!(lines[2].starts_with(" 3: workers: 9") && lines[2].ends_with("at most 8"), "{why}");
    }

    #[test]
    fn a_bound_is_named_as_included_or_excluded() {
        let words = |bounds: (Bound<u8>, Bound<u8>)| in_words(&bounds, u8::to_string);
        assert_eq!(words((Bound::Excluded(0), Bound::Included(1))), "; more than 0, at most 1");
        assert_eq!(words((Bound::Included(1), Bound::Unbounded)), "; at least 1");
        assert_eq!(words((Bound::Unbounded, Bound::Excluded(9))), "; less than 9");
        assert_eq!(words((Bound::Unbounded, Bound::Unbounded)), "");
    }

    #[test]
    fn a_syntax_error_names_its_line_and_quotes_nothing() {
        let why = read("workers = 1\nsecret-of-a-token").unwrap_err();
        assert!(why.starts_with("line 2: config: ") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn a_value_of_a_wrong_type_is_not_quoted() {
        let why = read("every = \"1s\"\nworkers = \"the secret is expected here\"").unwrap_err();
        assert!(why.starts_with("line 2: config: expected ") && !why.contains("secret"), "{why}");
    }
}
