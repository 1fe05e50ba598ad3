//! Reads values of a gateway's configuration file, in addition to those that all daemons have ([`config_file`]).

use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;

use admission::signature::Holder;
use jiff::{SignedDuration, Timestamp};
use serving::config_file::{self, SpannedText};
use toml::Spanned;
use url::Url;
use vap::glob::Pattern;

use super::{AgentKeys, Config, Mistakes};
use crate::limits::SHORTEST_SETTING;

/// A reader of values, which also notes the files that are watched for changes.
pub struct GatewayReader<'a> {
    file: config_file::ConfigReader<'a>,
    sources: Vec<PathBuf>,
}

impl<'a> Deref for GatewayReader<'a> {
    type Target = config_file::ConfigReader<'a>;

    fn deref(&self) -> &Self::Target {
        &self.file
    }
}

impl DerefMut for GatewayReader<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.file
    }
}

impl<'a> GatewayReader<'a> {
    /// A reader of this text; relative paths are relative to the folder.
    pub fn new(text: &'a str, folder: &'a Path) -> Self {
        Self { file: config_file::ConfigReader::new(text, folder), sources: Vec::new() }
    }

    /// The configuration with the files that it names, or all mistakes, in the order of their lines.
    pub fn into_config(self, config: Option<Config>) -> Result<Config, Mistakes> {
        let Self { file, sources } = self;
        file.finish(config.map(|config| Config { sources, ..config }))
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
            Err(why) => self.wrong(jwk, &format!("{what}.jwk"), why),
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

    /// An http or https URL without credentials and fragment.
    pub fn plain_url(&mut self, key: &str, text: &SpannedText) -> Option<Url> {
        let url = self.http(key, text)?;
        match url.fragment().is_some() || url.password().is_some() || !url.username().is_empty() {
            true => self.wrong(text, key, "no credentials and no fragment belong in this URL"),
            false => Some(url),
        }
    }

    /// A duration above zero.
    pub fn time(&mut self, key: &str, text: Option<&SpannedText>) -> Option<Duration> {
        self.duration(key, text, SHORTEST_SETTING..)
    }

    /// As [`relative`](config_file::ConfigReader::relative), for a file that is watched for changes.
    pub fn source_file(&mut self, path: Option<PathBuf>) -> Option<PathBuf> {
        let path = self.relative(path)?;
        self.sources.push(path.clone());
        Some(path)
    }
}

/// A pattern of tool names (V-8): any text, with `*` for any run of characters.
pub fn pattern(reader: &mut GatewayReader<'_>, key: &str, text: &SpannedText) -> Option<Pattern> {
    match Pattern::new(text.get_ref()) {
        Ok(pattern) if !text.get_ref().is_empty() => Some(pattern),
        Ok(_) => reader.wrong(text, key, "an empty pattern matches nothing"),
        Err(why) => reader.wrong(text, key, why.to_string()),
    }
}

/// A duration above zero, with a sign as timestamps need it.
pub fn length(
    reader: &mut GatewayReader<'_>,
    key: &str,
    text: Option<&SpannedText>,
) -> Option<SignedDuration> {
    reader.time(key, text).and_then(|length| SignedDuration::try_from(length).ok())
}

/// Reads the pattern in the key of a table, which has no position of its own.
pub fn named(reader: &mut GatewayReader<'_>, key: &str, tool: &str) -> Option<Pattern> {
    let read = Pattern::new(tool);
    if let Err(why) = &read {
        reader.mistake(None, key, why.to_string());
    }
    read.ok()
}
