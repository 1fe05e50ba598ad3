//! `tabellion record import --watch`: follows the session files of a folder, and signs a checkpoint of each session
//! that has grown.
//!
//! The draft allows signatures "after the conversation concludes or at defined checkpoints": each checkpoint is a
//! full record with a new `id`, and names the record before it as `previous-record`. The chain is in a state file,
//! which is replaced after the checkpoint's files are written. Signed checkpoints that are not in it, because of a crash
//! or because it is lost, are found by the names of their files, and the chain continues after them. No signed checkpoint
//! is ever replaced.
//!
//! With a log, checkpoints are registered after the state is written (`registering`).
//!
//! A source that cannot be read, translated or signed is noted, and does not stop the others. Only the state and the
//! files that are written end the process if they fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use durable::{FileAccess, Lock};
use serde::{Deserialize, Serialize};
use serving::signals::stop_signal;
use translators::{SessionRecord, SessionSource, Settings, Translation, translate};

use super::checkpoint::{Checkpoint, SessionOrigin};
use super::registering::CheckpointLog;
use super::sign::Recorder;
use super::sources::{self, NamedSource};
use super::writing::{CheckedRecord, WATCH_LOCK, WATCH_STATE, not_translated};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

/// A followed folder.
pub struct Watch {
    folder: PathBuf,
    output: PathBuf,
    every: Duration,
    settings: Settings,
    recorder: Recorder,
    log: Option<CheckpointLog>,
    state: State,
    /// By source what is wrong with it: the digest of a content that cannot be translated, or the failure to read it. Each
    /// is noted once.
    refused: BTreeMap<String, String>,
    shrunk: Shrunk,
    _lock: Lock,
}

/// The sources that are smaller than at their last checkpoint: the size in bytes of each, which is noted once.
#[derive(Default)]
struct Shrunk(BTreeMap<String, usize>);

impl Shrunk {
    /// Returns whether a source is smaller than it was, and that is to be noted. One that has grown again, or got a
    /// checkpoint, is noted again when it shrinks.
    fn is_news(&mut self, key: &str, before: usize, bytes: usize) -> bool {
        match bytes < before {
            true => self.0.insert(key.to_owned(), bytes) != Some(bytes),
            false => {
                self.0.remove(key);
                false
            }
        }
    }
}

/// The chains of all sessions, as stored.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// By path of the source, without links.
    sources: BTreeMap<String, SourceState>,
    /// Files of signed checkpoints that are not registered yet, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unregistered: Vec<String>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SourceState {
    /// SHA-256 digest of the source at the last look.
    digest: String,
    /// Its size in bytes.
    #[serde(default)]
    bytes: usize,
    /// By the session's identifier in the source, which the records may have in another form.
    sessions: BTreeMap<String, Checkpoint>,
}

impl Watch {
    /// Opens the state in the folder of the records. If another process has it, waits for it up to `patience`. The folder is
    /// followed by its path without links, so that its sessions have the same chains however it is named.
    pub fn new(
        folder: &Path,
        output: &Path,
        every: Duration,
        settings: Settings,
        recorder: Recorder,
        log: Option<CheckpointLog>,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let folder = without_links(folder)?;
        let lock = Lock::wait(&output.join(WATCH_LOCK), FileAccess::Secret, patience).map_err(|error| {
            Failure::new(Exit::Failure, "watch-locked", format!("{} is in use", output.display()))
                .fact("because", error.to_string())
        })?;
        Ok(Watch {
            folder,
            output: output.to_owned(),
            every,
            settings,
            recorder,
            log,
            state: State::read(&output.join(WATCH_STATE))?,
            refused: BTreeMap::new(),
            shrunk: Shrunk::default(),
            _lock: lock,
        })
    }

    /// Looks at the folder again and again, until a stop signal.
    pub fn run(mut self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::single_threaded()?;
        let mut stop = pin!({
            let _inside = runtime.enter();
            stop_signal()
        });
        loop {
            self.look(context)?;
            self.register(context)?;
            let is_stopped = runtime.block_on(async {
                tokio::select! {
                    () = &mut stop => true,
                    () = tokio::time::sleep(self.every) => false,
                }
            });
            if is_stopped {
                return Ok(());
            }
        }
    }

    /// Signs a checkpoint of one source if it has grown, and registers what waits for it.
    pub fn record(mut self, context: &Context, source: NamedSource) -> Result<(), Failure> {
        let source = NamedSource { path: without_links(&source.path)?, ..source };
        let content = sources::complete_lines(&source.read()?);
        self.look_at(context, &source, source.path.display().to_string(), &content)?;
        self.register(context)
    }

    /// Registers the checkpoints that wait for it.
    fn register(&mut self, context: &Context) -> Result<(), Failure> {
        let Some(log) = self.log.as_mut().filter(|_| !self.state.unregistered.is_empty()) else {
            return Ok(());
        };
        let before = self.state.unregistered.len();
        let result = log.register(context, &self.output, &mut self.state.unregistered);
        if self.state.unregistered.len() < before {
            self.state.write(&self.output.join(WATCH_STATE))?;
        }
        result
    }

    fn look(&mut self, context: &Context) -> Result<(), Failure> {
        let found = sources::find(&self.folder);
        for failure in found.unreadable {
            self.refuse(context, failure.in_short(), failure.in_short(), &failure.in_short());
        }
        for (path, reason) in found.passed_over {
            let path = path.display().to_string();
            self.refuse(context, path.clone(), reason.to_owned(), &format!("{path}: {reason}"));
        }
        for source in found.sources {
            let key = source.path.display().to_string();
            match source.read() {
                Ok(content) => self.look_at(context, &source, key, &sources::complete_lines(&content))?,
                Err(failure) => self.refuse(context, key, failure.in_short(), &failure.in_short()),
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
        self.note_if_smaller(context, &key, content.bytes());
        let digest = content.sha256();
        let known = self.state.sources.get(&key).map(|state| &state.digest);
        let is_new = known != Some(&digest) && self.refused.get(&key) != Some(&digest);
        if content.bytes() == 0 || !is_new {
            return Ok(());
        }
        self.check_in(context, source, content, key, digest)
    }

    /// Notes what is wrong with a source, unless that was noted before.
    fn refuse(&mut self, context: &Context, key: String, wrong: String, note: &str) {
        if self.refused.insert(key, wrong.clone()).as_ref() != Some(&wrong) {
            context.console.note(note);
        }
    }

    /// Notes that a source has become smaller since its last checkpoint, unless that was noted before. Session
    /// files usually only grow, so somebody may have removed entries.
    fn note_if_smaller(&mut self, context: &Context, key: &str, bytes: usize) {
        let before = self.state.sources.get(key).map_or(0, |state| state.bytes);
        if self.shrunk.is_news(key, before, bytes) {
            context.console.note(format!(
                "{key} has become smaller: {bytes} bytes, after {before}. Earlier checkpoints have the missing part"
            ));
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
        let translation =
            self.translate_after_last_checkpoints(context, source, content, &key, &mut sessions)?;
        let Some(translation) = translation else { return Ok(()) };
        let many = translation.sessions().count() > 1;
        let (mut written, mut is_complete) = (Vec::new(), true);
        for parts in translation.sessions() {
            let records: Vec<&SessionRecord> = parts.iter().map(|(record, _)| record).collect();
            let Some(first) = records.first() else { continue };
            let session = first.native_session();
            let Some(checkpoint) = Checkpoint::after(sessions.get(session), &records) else { continue };
            let name = if many { first.session_id() } else { &source.name };
            let origin = SessionOrigin::of(&source.path, session);
            let checked = match self.check(&origin, name, &records, &checkpoint) {
                Ok(checked) => checked,
                Err(failure) => {
                    context.console.note(format!("{}: {}", source.path.display(), failure.in_short()));
                    is_complete = false;
                    continue;
                }
            };
            for (record, number) in &checked {
                record.write(Existing::Replace)?;
                self.await_registration(&record.statement_file());
                written.push(WrittenCheckpoint::of(record, *number));
            }
            sessions.insert(session.to_owned(), checkpoint);
        }
        self.keep_state(key, digest, content.bytes(), sessions, is_complete)?;
        written.iter().try_for_each(|checkpoint| checkpoint.print(context))
    }

    /// Keeps the last checkpoints of a source's sessions. A source with a session that could not be signed keeps its
    /// earlier digest: a later run tries it again, perhaps with other settings.
    fn keep_state(
        &mut self,
        key: String,
        digest: String,
        bytes: usize,
        sessions: BTreeMap<String, Checkpoint>,
        is_complete: bool,
    ) -> Result<(), Failure> {
        let state = match is_complete {
            true => SourceState { digest, bytes, sessions },
            false => {
                self.refused.insert(key.clone(), digest);
                let before = self.state.sources.remove(&key);
                let (digest, bytes) = before.map(|state| (state.digest, state.bytes)).unwrap_or_default();
                SourceState { digest, bytes, sessions }
            }
        };
        self.state.sources.insert(key, state);
        self.state.write(&self.output.join(WATCH_STATE))
    }

    /// Checks and signs the records of a checkpoint. Returns each with its number.
    fn check<'r>(
        &self,
        origin: &SessionOrigin,
        name: &str,
        records: &[&'r SessionRecord],
        checkpoint: &Checkpoint,
    ) -> Result<Vec<(CheckedRecord<'r>, u64)>, Failure> {
        let numbered = checkpoint.numbers(records.len()).zip(records);
        let checked = numbered.map(|(number, &record)| {
            let file = self.output.join(origin.record_file(name, number));
            Ok((CheckedRecord::new(record, file, Some(&self.recorder))?, number))
        });
        checked.collect()
    }

    /// Translates a source with the last checkpoints of its sessions, also those that are not in the state, which are added.
    fn translate_after_last_checkpoints(
        &mut self,
        context: &Context,
        source: &NamedSource,
        content: &SessionSource,
        key: &str,
        sessions: &mut BTreeMap<String, Checkpoint>,
    ) -> Result<Option<Translation>, Failure> {
        let Some(translation) = self.translate(context, source, content, key, sessions) else {
            return Ok(None);
        };
        match self.adopt(source, &translation, sessions)? {
            true => Ok(self.translate(context, source, content, key, sessions)),
            false => Ok(Some(translation)),
        }
    }

    /// Translates a source with the last checkpoints of its sessions; `None` if that is impossible, which is noted.
    fn translate(
        &mut self,
        context: &Context,
        source: &NamedSource,
        content: &SessionSource,
        key: &str,
        sessions: &BTreeMap<String, Checkpoint>,
    ) -> Option<Translation> {
        let previous = sessions.iter().map(|(id, last)| (id.clone(), last.record.clone())).collect();
        let settings = Settings { previous_records: previous, ..self.settings.clone() };
        match translate(content, &settings) {
            Ok(translation) => Some(translation),
            Err(error) => {
                let note = not_translated(&source.path, &error).in_short();
                self.refuse(context, key.to_owned(), content.sha256(), &note);
                None
            }
        }
    }

    /// Continues after signed checkpoints that are not in the state. Returns whether there are any.
    fn adopt(
        &mut self,
        source: &NamedSource,
        translation: &Translation,
        sessions: &mut BTreeMap<String, Checkpoint>,
    ) -> Result<bool, Failure> {
        let mut adopted = false;
        for parts in translation.sessions() {
            let session = parts.first().map_or("", |(record, _)| record.native_session());
            let origin = SessionOrigin::of(&source.path, session);
            if let Some((newest, files)) = origin.newer(&self.output, sessions.get(session))? {
                sessions.insert(session.to_owned(), newest);
                files.iter().for_each(|file| self.await_registration(file));
                adopted = true;
            }
        }
        Ok(adopted)
    }

    /// Adds a statement to those that wait for the log, if there is one.
    fn await_registration(&mut self, statement: &Path) {
        if let (Some(_), Some(name)) = (&self.log, statement.file_name()) {
            self.state.unregistered.push(name.to_string_lossy().into_owned());
        }
    }
}

/// Returns the path of a source or folder without links and relative steps.
fn without_links(path: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(path).map_err(|error| files::unreadable(path, &error))
}

/// A record of a checkpoint whose files and state are written.
struct WrittenCheckpoint {
    session: String,
    number: u64,
    /// `sha256:` and the digest of the record.
    record: String,
    file: String,
}

impl WrittenCheckpoint {
    fn of(checked: &CheckedRecord<'_>, number: u64) -> Self {
        let record = checked.record();
        let file = checked.file().display().to_string();
        WrittenCheckpoint { session: record.session_id().to_owned(), number, record: record.digest(), file }
    }

    fn print(&self, context: &Context) -> Result<(), Failure> {
        let WrittenCheckpoint { session, number, record, file } = self;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_shrinks_is_news_once_each_time() {
        let mut shrunk = Shrunk::default();
        for (before, bytes, expected) in [
            (0, 100, false),
            (100, 0, true),
            (100, 0, false),
            (100, 50, true),
            // After a checkpoint of the 50 bytes, and one of more.
            (50, 50, false),
            (50, 100, false),
            (100, 50, true),
        ] {
            assert_eq!(shrunk.is_news("s.jsonl", before, bytes), expected, "{before} {bytes}");
        }
        assert!(shrunk.is_news("other.jsonl", 100, 50));
    }
}
