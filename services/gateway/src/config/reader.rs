//! Reads single values of a configuration file, and collects the mistakes in them.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admission::signature::Holder;
use jiff::{SignedDuration, Timestamp};
use serving::units::{parse_duration, parse_size};
use toml::Spanned;
use url::Url;
use vap::glob::Pattern;

use super::file::{self, SpannedText};
use super::{AgentKeys, Mistake, Mistakes};

/// A reader of values, which collects the mistakes.
pub struct ConfigReader<'a> {
    text: &'a str,
    folder: &'a Path,
    mistakes: Vec<Mistake>,
    sources: Vec<PathBuf>,
}

impl<'a> ConfigReader<'a> {
    /// A reader of this text; relative paths are relative to the folder.
    pub fn new(text: &'a str, folder: &'a Path) -> Self {
        Self { text, folder, mistakes: Vec::new(), sources: Vec::new() }
    }

    /// The files that the configuration names and that are watched, or all mistakes, in the order of their lines.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Mistakes> {
        match self.mistakes.is_empty() {
            true => Ok(self.sources),
            false => {
                self.mistakes.sort_by_key(|mistake| mistake.line);
                Err(Mistakes(self.mistakes))
            }
        }
    }

    /// A path, resolved against the file's folder.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// The keys in a file, which their holder may sign with in this period.
    pub fn keys(
        &mut self,
        what: &str,
        holder: Holder,
        jwk: &Spanned<PathBuf>,
        validity: [&Option<SpannedText>; 2],
    ) -> Option<(Range<usize>, AgentKeys)> {
        let file = self.path(jwk.get_ref());
        let read = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()));
        let keys = read.and_then(|bytes| crate::jwk_set::parse(&bytes));
        let [not_before, not_after] = validity.map(|text| self.timestamp(what, text.as_ref()));
        self.sources.push(file.clone());
        match keys {
            Ok(keys) => Some((jwk.span(), AgentKeys { holder, keys, file, not_before, not_after })),
            Err(why) => {
                self.mistake(Some(jwk.span()), &format!("{what}.jwk"), why);
                None
            }
        }
    }

    /// An RFC 3339 timestamp.
    pub fn timestamp(&mut self, what: &str, text: Option<&SpannedText>) -> Option<Timestamp> {
        let text = text?;
        match text.get_ref().parse() {
            Ok(time) => Some(time),
            Err(_) => self.wrong(text, what, "a time is written like 2026-12-01T00:00:00Z"),
        }
    }

    /// A number of at least 1.
    pub fn positive<T: Default + PartialEq>(&mut self, key: &str, given: Option<Spanned<T>>, usual: T) -> T {
        match given {
            None => usual,
            Some(number) if *number.get_ref() == T::default() => {
                self.mistake(Some(number.span()), key, "0 would let nothing through");
                usual
            }
            Some(number) => number.into_inner(),
        }
    }

    /// A socket address.
    pub fn address(&mut self, key: &str, text: &SpannedText) -> Option<SocketAddr> {
        match text.get_ref().parse() {
            Ok(address) => Some(address),
            Err(_) => self.wrong(text, key, "an address is written like 127.0.0.1:7400"),
        }
    }

    /// An http or https URL without credentials and fragment.
    pub fn http(&mut self, key: &str, text: &SpannedText) -> Option<Url> {
        match Url::parse(text.get_ref()) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                self.wrong(text, key, "an http or https URL is needed here")
            }
            Ok(url) if url.fragment().is_some() || url.password().is_some() || !url.username().is_empty() => {
                self.wrong(text, key, "no credentials and no fragment belong in this URL")
            }
            Ok(url) => Some(url),
            Err(error) => self.wrong(text, key, error.to_string()),
        }
    }

    /// A duration above zero.
    pub fn time(&mut self, key: &str, text: Option<&SpannedText>) -> Option<Duration> {
        let text = text?;
        match parse_duration(text.get_ref()).filter(|length| !length.is_zero()) {
            Some(length) => Some(length),
            None => self.wrong(text, key, "a length of time is written like 250ms, 90s, 15m, 2h or 1d"),
        }
    }

    /// A size in bytes.
    pub fn size(&mut self, key: &str, written: Option<&file::Amount>) -> Option<u64> {
        let written = written?;
        let bytes = match written.get_ref() {
            toml::Value::Integer(number) => u64::try_from(*number).ok(),
            toml::Value::String(text) => parse_size(text),
            _ => None,
        };
        if bytes.is_none() {
            self.mistake(Some(written.span()), key, "a size is written like 1048576, \"4MiB\" or \"1GiB\"");
        }
        bytes
    }

    /// A path, resolved against the file's folder.
    pub fn relative(&self, path: Option<PathBuf>) -> Option<PathBuf> {
        path.map(|path| self.path(path))
    }

    /// As [`ConfigReader::relative`], for a file that is watched for changes.
    pub fn source_file(&mut self, path: Option<PathBuf>) -> Option<PathBuf> {
        let path = self.relative(path)?;
        self.sources.push(path.clone());
        Some(path)
    }

    /// The source text at this range of the file.
    pub fn source(&self, span: &Range<usize>) -> String {
        self.text.get(span.clone()).unwrap_or_default().trim().to_owned()
    }

    /// Reports a mistake, and returns `None` for the value.
    pub fn wrong<T>(&mut self, at: &SpannedText, key: &str, why: impl Into<String>) -> Option<T> {
        self.mistake(Some(at.span()), key, why);
        None
    }

    /// Reports a mistake.
    pub fn mistake(&mut self, span: Option<Range<usize>>, key: &str, why: impl Into<String>) {
        let line = span.map(|span| line_of(self.text, span.start));
        self.mistakes.push(Mistake { line, key: key.to_owned(), why: why.into() });
    }
}

/// One of a few words; the first one is the default.
pub fn chosen<T: Copy>(
    reader: &mut ConfigReader<'_>,
    key: &str,
    text: Option<&SpannedText>,
    words: &[(&str, T)],
) -> T {
    let usual = words[0].1;
    let Some(text) = text else { return usual };
    match words.iter().find(|(word, _)| word == text.get_ref()) {
        Some((_, value)) => *value,
        None => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            reader.mistake(Some(text.span()), key, format!("one of {}", words.join(", ")));
            usual
        }
    }
}

/// A pattern of tool names (V-8): any text, with `*` for any run of characters.
pub fn pattern(reader: &mut ConfigReader<'_>, key: &str, text: &SpannedText) -> Option<Pattern> {
    match Pattern::new(text.get_ref()) {
        Ok(pattern) if !text.get_ref().is_empty() => Some(pattern),
        Ok(_) => reader.wrong(text, key, "an empty pattern matches nothing"),
        Err(why) => reader.wrong(text, key, why.to_string()),
    }
}

/// A number of calls, at least 1.
pub fn calls(reader: &mut ConfigReader<'_>, key: &str, given: Option<&Spanned<u64>>) -> Option<u64> {
    let given = given.map(|calls| Spanned::new(calls.span(), *calls.get_ref()))?;
    Some(reader.positive(key, Some(given), 1))
}

/// A length of time.
pub fn length(
    reader: &mut ConfigReader<'_>,
    key: &str,
    text: Option<&SpannedText>,
) -> Option<SignedDuration> {
    reader.time(key, text).and_then(|length| SignedDuration::try_from(length).ok())
}

/// Reads the pattern in the key of a table, which has no position of its own.
pub fn named(reader: &mut ConfigReader<'_>, key: &str, tool: &str) -> Option<Pattern> {
    let read = Pattern::new(tool);
    if let Err(why) = &read {
        reader.mistake(None, key, why.to_string());
    }
    read.ok()
}

/// The number of the line at this offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
