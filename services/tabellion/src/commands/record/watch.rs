//! `tabellion record import --watch`: follows the session files of a folder, and signs a checkpoint of each session
//! that has grown.
//!
//! The draft allows signatures "after the conversation concludes or at defined checkpoints": each checkpoint is a
//! full record with a new `id`, and names the record before it as `previous-record`. The chain is in a state file,
//! which is replaced after the checkpoint's files are written: a crash in between leaves files that the next
//! checkpoint replaces. No other signed checkpoint is ever replaced.
//!
//! A source that cannot be read, translated or signed is noted, and does not stop the others. Only the state and the
//! files that are written end the process if they fail.
//!
//! Not here: registration. `tabellion register FILE.cose` registers a checkpoint.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use durable::{FileAccess, Lock};
use merkle::EntryDigest;
use serde::{Deserialize, Serialize};
use serving::signals::stop_signal;
use translators::{SessionRecord, SessionSource, Settings, translate};

use super::document;
use super::sign::Recorder;
use super::sources::{self, NamedSource};
use super::writing::{CheckedRecord, WATCH_LOCK, WATCH_STATE, file_name, not_translated};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;

/// The member that names the record before.
const PREVIOUS: &str = "previous-record";
/// Number of hex digits of the digest in names of files.
const ORIGIN_DIGITS: usize = 12;

/// A followed folder.
pub struct Watch {
    folder: PathBuf,
    output: PathBuf,
    every: Duration,
    settings: Settings,
    recorder: Recorder,
    state: State,
    /// By source what is wrong with it: the digest of a content that cannot be translated, or the failure to read it. Each
    /// is noted once.
    refused: BTreeMap<String, String>,
    _lock: Lock,
}

/// The chains of all sessions, as stored.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// By path of the source, relative to the folder.
    sources: BTreeMap<String, SourceState>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SourceState {
    /// SHA-256 digest of the source at the last look.
    digest: String,
    sessions: BTreeMap<String, Checkpoint>,
}

/// The last checkpoint of a session.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    /// Number of the checkpoint, from 1.
    number: u64,
    /// The record: `sha256:` and its digest.
    record: String,
    /// SHA-256 digest of the session in the record: a session that has not changed gets no checkpoint.
    session: String,
}

impl Watch {
    /// Opens the state in the folder of the records.
    pub fn new(
        folder: &Path,
        output: &Path,
        every: u64,
        settings: Settings,
        recorder: Recorder,
    ) -> Result<Self, Failure> {
        fs::metadata(folder).map_err(|error| files::unreadable(folder, &error))?;
        let lock = Lock::take(&output.join(WATCH_LOCK), FileAccess::Secret).map_err(|error| {
            Failure::new(Exit::Failure, "watch-locked", format!("{} is in use", output.display()))
                .fact("because", error.to_string())
        })?;
        Ok(Watch {
            folder: folder.to_owned(),
            output: output.to_owned(),
            every: Duration::from_secs(every.max(1)),
            settings,
            recorder,
            state: State::read(&output.join(WATCH_STATE))?,
            refused: BTreeMap::new(),
            _lock: lock,
        })
    }

    /// Looks at the folder again and again, until a stop signal.
    pub fn run(mut self, context: &Context) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut stop = pin!(stop_signal());
            loop {
                self.look(context)?;
                tokio::select! {
                    () = &mut stop => return Ok(()),
                    () = tokio::time::sleep(self.every) => {}
                }
            }
        })
    }

    fn look(&mut self, context: &Context) -> Result<(), Failure> {
        let found = sources::find(&self.folder);
        for failure in found.unreadable {
            self.refuse(context, failure.in_short(), failure.in_short(), &failure);
        }
        for source in found.sources {
            let key = source.path.display().to_string();
            match source.read() {
                Ok(content) => self.look_at(context, &source, key, &sources::complete_lines(&content))?,
                Err(failure) => self.refuse(context, key, failure.in_short(), &failure),
            }
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        context: &Context,
        source: &NamedSource,
        key: String,
        content: &SessionSource,
    ) -> Result<(), Failure> {
        let digest = content.sha256();
        let known = self.state.sources.get(&key).map(|state| &state.digest);
        let is_new = known != Some(&digest) && self.refused.get(&key) != Some(&digest);
        if content.bytes() == 0 || !is_new {
            return Ok(());
        }
        self.check_in(context, source, content, key, digest)
    }

    /// Notes what is wrong with a source, unless that was noted before.
    fn refuse(&mut self, context: &Context, key: String, wrong: String, failure: &Failure) {
        if self.refused.insert(key, wrong.clone()).as_ref() != Some(&wrong) {
            context.console.note(failure.in_short());
        }
    }

    /// Signs checkpoints of the sessions of a source that has changed.
    fn check_in(
        &mut self,
        context: &Context,
        source: &NamedSource,
        content: &SessionSource,
        key: String,
        digest: String,
    ) -> Result<(), Failure> {
        let mut sessions =
            self.state.sources.get(&key).map(|state| state.sessions.clone()).unwrap_or_default();
        let previous = sessions.iter().map(|(id, last)| (id.clone(), last.record.clone())).collect();
        let settings = Settings { previous_records: previous, ..self.settings.clone() };
        let translation = match translate(content, &settings) {
            Ok(translation) => translation,
            Err(error) => {
                self.refuse(context, key, digest, &not_translated(&source.path, &error));
                return Ok(());
            }
        };
        let many = translation.records.len() > 1;
        let mut written = Vec::new();
        for (record, _) in translation.records {
            let Some(checkpoint) = Checkpoint::after(sessions.get(record.session_id()), &record) else {
                continue;
            };
            let name = if many { record.session_id() } else { &source.name };
            let file = self.output.join(checkpoint.file_name(name, &source.path, record.session_id()));
            let checked = match CheckedRecord::new(&record, file, Some(&self.recorder)) {
                Ok(checked) => checked,
                Err(failure) => {
                    context.console.note(format!("{}: {}", source.path.display(), failure.in_short()));
                    continue;
                }
            };
            written.push(write(&checked, &record, &checkpoint)?);
            sessions.insert(record.session_id().to_owned(), checkpoint);
        }
        self.state.sources.insert(key, SourceState { digest, sessions });
        self.state.write(&self.output.join(WATCH_STATE))?;
        written.iter().try_for_each(|checkpoint| checkpoint.print(context))
    }
}

/// Writes the files of a checkpoint. Those of another checkpoint are replaced only if it follows the same record: then
/// a crash kept it out of the state.
fn write(
    checked: &CheckedRecord<'_>,
    record: &SessionRecord,
    checkpoint: &Checkpoint,
) -> Result<WrittenCheckpoint, Failure> {
    let statement = checked.statement_file();
    if statement.exists() {
        let existing = document::read(&statement)?;
        if existing.get(PREVIOUS) != record.value().get(PREVIOUS) {
            let what = format!("{} is another signed checkpoint", statement.display());
            return Err(Failure::new(Exit::Exists, "exists", what).hint("move it away"));
        }
    }
    checked.write(Existing::Replace)?;
    Ok(WrittenCheckpoint {
        session: record.session_id().to_owned(),
        checkpoint: checkpoint.clone(),
        file: checked.file().display().to_string(),
    })
}

impl Checkpoint {
    /// Returns the checkpoint after the last one; `None` if the session has not changed.
    fn after(last: Option<&Checkpoint>, record: &SessionRecord) -> Option<Checkpoint> {
        let session = EntryDigest::of(record.value()["session"].to_string().as_bytes()).to_string();
        if last.is_some_and(|last| last.session == session) {
            return None;
        }
        Some(Checkpoint { number: last.map_or(1, |last| last.number + 1), record: record.digest(), session })
    }

    /// Returns the name of the record's file. Names of sources and sessions may become the same as names of files, so a
    /// digest of both is part of it.
    fn file_name(&self, name: &str, source: &Path, session: &str) -> String {
        let origin = [source.as_os_str().as_encoded_bytes(), b"\0", session.as_bytes()].concat();
        let origin: String = EntryDigest::of(&origin).to_string().chars().take(ORIGIN_DIGITS).collect();
        format!("{}-{origin}.{}.record.json", file_name(name), self.number)
    }
}

/// A checkpoint whose files and state are written.
struct WrittenCheckpoint {
    session: String,
    checkpoint: Checkpoint,
    file: String,
}

impl WrittenCheckpoint {
    fn print(&self, context: &Context) -> Result<(), Failure> {
        let WrittenCheckpoint { session, checkpoint, file } = self;
        let (number, record) = (checkpoint.number, &checkpoint.record);
        let json = members! { session, number, record, file };
        context
            .console
            .print(&json, |out| writeln!(out, "checkpoint {number} of {}: {}", safe(session), safe(file)))
    }
}

impl State {
    fn read(file: &Path) -> Result<State, Failure> {
        if !file.exists() {
            return Ok(State::default());
        }
        jose::json::read_bytes(&files::read(file)?).map_err(|error| {
            Failure::new(Exit::Failure, "watch-state-unusable", format!("{} cannot be used", file.display()))
                .fact("because", error.to_string())
        })
    }

    fn write(&self, file: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self)
            .map_err(|error| Failure::new(Exit::Failure, "io", format!("{}: {error}", file.display())))?;
        files::write(file, &bytes, Access::Secret, Existing::Replace)
    }
}
