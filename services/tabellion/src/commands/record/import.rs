//! `tabellion record import`: translates session files to records, and signs them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use display::counted;
use serde::Serialize;
use translators::{
    Diagnostic, Format, RecordPart, Redactions, SessionRecord, Settings, TranslateError, TranslationAccount,
    translate,
};

use super::redaction_args::RedactionArgs;
use super::registering::CheckpointLog;
use super::sign::Recorder;
use super::sources::{self, NamedSource};
use super::watch::Watch;
use super::writing::{self, CheckedRecord, not_translated, record_file};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
#[command(
    mut_arg("url", |url| url.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true)),
    mut_arg("token_file", |token| token.hide(true)),
    mut_arg("timeout", |timeout| timeout.hide(true))
)]
pub struct Import {
    /// Session files, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The format [default: detected]
    #[arg(long, value_name = "FORMAT", hide = true)]
    format: Option<Format>,
    /// The folder for the records
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Sign the records with the recorder's key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The recorder [default: the key's did:key]
    #[arg(long, value_name = "URI", requires = "key")]
    iss: Option<String>,
    /// Follow a folder, signing checkpoints
    #[arg(long, requires = "key")]
    watch: bool,
    /// Register each checkpoint at the log
    #[arg(long, requires = "watch")]
    register: bool,
    /// The trust file; a new log's key is added to it
    #[arg(long, value_name = "FILE", requires = "register", hide = true)]
    trust: Option<PathBuf>,
    /// Seconds between two looks at the folder
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "watch", hide = true)]
    every: u64,
    /// The folder that the paths of file-attribution are relative to [default: the session's working folder]
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<String>,
    #[command(flatten)]
    redaction: RedactionArgs,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Import {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let recorder = self.key.as_deref().map(|key| Recorder::read(key, self.iss.clone())).transpose()?;
        let settings = self.settings()?;
        files::make_folder(&self.output, Access::Ordinary)?;
        if self.watch {
            let [folder] = self.files.as_slice() else {
                return Err(Failure::new(Exit::Usage, "usage", "--watch follows one folder"));
            };
            let recorder = recorder.ok_or_else(crate::commands::issuer::no_key)?;
            let log = self.register.then(|| CheckpointLog::new(self.trust.clone(), self.service.clone()));
            let every = Duration::from_secs(self.every.max(1));
            let watch = Watch::new(folder, &self.output, every, settings, recorder, log, Duration::ZERO)?;
            return watch.run(context);
        }
        let mut summary = ImportSummary::default();
        for path in &self.files {
            let found = sources::find(path);
            summary.failed.extend(found.unreadable.iter().map(Failure::in_short));
            for (path, reason) in &found.passed_over {
                summary.skip(context, path, reason);
            }
            if found.sources.is_empty() && found.unreadable.is_empty() {
                context.console.note(format!("no session file in {}", path.display()));
            }
            for source in found.sources {
                match self.import(context, &source, &settings, recorder.as_ref(), &mut summary) {
                    Err(failure) if !self.is_alone(&source) => summary.failed.push(failure.in_short()),
                    result => result?,
                }
            }
        }
        context.console.result(&summary)?;
        match summary.failed.is_empty() {
            true => Ok(()),
            false => Err(Failure::already_printed(Exit::Failure)),
        }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let redaction = self.redaction.redaction()?;
        let (format, root) = (self.format, self.root.clone());
        Ok(Settings { format, redaction, root, ..writing::settings() })
    }

    /// Returns whether the source is all that was named: its failure is that of the command.
    fn is_alone(&self, source: &NamedSource) -> bool {
        source.named && self.files.len() == 1
    }

    /// Imports a source. A file that was only found in a folder may be something else, and is skipped then. A record of
    /// several that cannot be written does not stop the others.
    fn import(
        &self,
        context: &Context,
        source: &NamedSource,
        settings: &Settings,
        recorder: Option<&Recorder>,
        summary: &mut ImportSummary,
    ) -> Result<(), Failure> {
        let translation = match translate(&source.read()?, settings) {
            Ok(translation) => translation,
            Err(
                error @ (TranslateError::UnknownFormat
                | TranslateError::Empty
                | TranslateError::Utf16
                | TranslateError::NoSession { .. }),
            ) if !source.named => {
                summary.skip(context, &source.path, &error.to_string());
                return Ok(());
            }
            Err(error) => return Err(not_translated(&source.path, &error)),
        };
        let many = translation.sessions().count() > 1;
        let (mut records, mut failures) = (Vec::new(), Vec::new());
        for parts in translation.sessions() {
            match self.write(source, parts, many, recorder) {
                Ok(written) => records.extend(written),
                Err(failure) => failures.push(failure),
            }
        }
        let (file, format) = (source.path.display().to_string(), translation.format);
        summary.sources.push(ImportedSource { file, format, records, account: translation.account });
        let first = (!failures.is_empty()).then(|| failures.remove(0));
        summary.failed.extend(failures.iter().map(Failure::in_short));
        first.map_or(Ok(()), Err)
    }

    /// Writes the records of a session, all or, if one of them cannot be signed, none. With `many` sessions in the source
    /// they are named after the session.
    fn write(
        &self,
        source: &NamedSource,
        parts: &[(SessionRecord, Redactions)],
        many: bool,
        recorder: Option<&Recorder>,
    ) -> Result<Vec<WrittenRecord>, Failure> {
        let checked = parts.iter().map(|(record, _)| {
            let name = if many { record.session_id() } else { &source.name };
            CheckedRecord::new(record, record_file(&self.output, name, record), recorder)
        });
        let checked = checked.collect::<Result<Vec<_>, Failure>>()?;
        let written = checked.iter().zip(parts).map(|(checked, (record, redactions))| {
            Ok(WrittenRecord::of(record, redactions.clone(), checked.write(Existing::Keep)?))
        });
        written.collect()
    }
}

#[derive(Default, Serialize)]
struct ImportSummary {
    sources: Vec<ImportedSource>,
    /// Files of folders that are not session files, and what is not a file.
    skipped: Vec<String>,
    /// What kept files and folders that were found from being imported.
    failed: Vec<String>,
}

impl ImportSummary {
    fn skip(&mut self, context: &Context, path: &Path, reason: &str) {
        context.console.note(format!("skipped    {}: {reason}", path.display()));
        self.skipped.push(path.display().to_string());
    }
}

#[derive(Serialize)]
struct ImportedSource {
    file: String,
    format: Format,
    records: Vec<WrittenRecord>,
    account: TranslationAccount,
}

#[derive(Serialize)]
struct WrittenRecord {
    session: String,
    /// Which entries of the session it has, if the session has several records.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<RecordPart>,
    digest: String,
    wrote: Vec<String>,
    redactions: Redactions,
}

impl WrittenRecord {
    fn of(record: &SessionRecord, redactions: Redactions, files: Vec<PathBuf>) -> Self {
        let wrote = files.iter().map(|file| file.display().to_string()).collect();
        let (session, digest) = (record.session_id().to_owned(), record.digest());
        WrittenRecord { session, part: RecordPart::of(record.frame()), digest, wrote, redactions }
    }
}

impl WrittenRecord {
    /// Says which entries a part has.
    fn extent(&self) -> String {
        let Some(part) = self.part else { return String::new() };
        let RecordPart { number, first_entry, entries, session_entries } = part;
        let last = first_entry + entries;
        format!("  (part {number}: entries {} to {last} of {session_entries})", first_entry + 1)
    }
}

impl Report for ImportSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.sources.iter().try_for_each(|source| source.human(out))?;
        self.failed.iter().try_for_each(|failure| writeln!(out, "failed     {}", safe(failure)))
    }
}

impl ImportedSource {
    /// Names the line that a note is about, or the file or row of a source that has several.
    fn place(&self, note: &Diagnostic) -> String {
        let is_whole = Path::new(&self.file).file_name().is_some_and(|name| name == note.file.as_str());
        match note.line {
            Some(line) => format!("line {line}: "),
            None if is_whole => String::new(),
            None => format!("{}: ", note.file),
        }
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let entries = counted(self.account.total, "entry", "entries");
        writeln!(out, "{} ({}, {entries})", safe(&self.file), self.format)?;
        for (kind, outcomes) in &self.account.entries {
            for (outcome, count) in outcomes {
                writeln!(out, "  {count:6} {:32} {outcome}", safe(kind))?;
            }
        }
        for (kind, outcome, count) in self.account.skipped_parts() {
            writeln!(out, "  {count:6} {:32} {outcome}", safe(kind))?;
        }
        for note in self.account.broken.iter().chain(&self.account.remarks) {
            writeln!(out, "  note   {}{}", safe(&self.place(note)), safe(&note.reason))?;
        }
        for record in &self.records {
            for (rule, count) in record.redactions.counts() {
                writeln!(out, "  {count:6} {:32} left out", safe(rule))?;
            }
            writeln!(out, "  wrote  {}{}", safe(&record.wrote.join(" and ")), record.extent())?;
        }
        Ok(())
    }
}
