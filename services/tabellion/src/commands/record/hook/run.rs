//! `tabellion record hook run`: what an agent starts at the end of a session. The event is read and checked here; a
//! process of its own then imports, signs and registers the session, as a checkpoint if it was recorded before.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::agent::CodingAgent;
use super::event::SessionEvent;
use super::session_file;
use crate::commands::issuer::no_key;
use crate::commands::record::registering::CheckpointLog;
use crate::commands::record::sign::Recorder;
use crate::commands::record::sources::NamedSource;
use crate::commands::record::watch::Watch;
use crate::commands::record::writing;
use crate::commands::verify::now;
use crate::console::files::{self, Access};
use crate::console::{Exit, Failure, safe};
use crate::context::Context;
use crate::service::ServiceArgs;
use crate::show;
use crate::state_folder::state_folder;

/// The file in the folder of the records with what was recorded, and with problems.
const LOG: &str = "hook.log";
/// Size in bytes at which that file is begun again.
const MAX_LOG: u64 = 1 << 20;
/// Maximum time to wait for another session that is being recorded.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
#[command(
    mut_arg("url", |url| url.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true)),
    mut_arg("token_file", |token| token.hide(true)),
    mut_arg("timeout", |timeout| timeout.hide(true))
)]
pub struct Run {
    /// The agent: claude-code, codex or cursor
    #[arg(hide_possible_values = true)]
    agent: CodingAgent,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Record before ending, instead of in a process of its own
    #[arg(long)]
    wait: bool,
    /// The session's file, as this command names it for its own process
    #[arg(long, value_name = "FILE", hide = true)]
    session_file: Option<PathBuf>,
    /// Codex: the program to notify as well, and the event
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How a session is recorded.
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// The recorder's key
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The recorder [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    pub iss: Option<String>,
    /// The folder for the records [default: ~/.local/state/tabellion/records]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Register the records at the log
    #[arg(long)]
    pub register: bool,
    /// The trust file; a new log's key is added to it
    #[arg(long, value_name = "FILE", requires = "register")]
    pub trust: Option<PathBuf>,
    #[command(flatten)]
    pub service: ServiceArgs,
}

impl RecordingArgs {
    /// Reads the recorder's key (`no-key` if none is named).
    pub fn recorder(&self) -> Result<Recorder, Failure> {
        Recorder::read(self.key.as_deref().ok_or_else(no_key)?, self.iss.clone())
    }

    /// Returns the folder for the records.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        state_folder(self.output.as_deref(), "--output", "records")
    }
}

impl Run {
    /// Records the session. Always succeeds, because a hook must not fail its agent.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let Err(failure) = self.record(context) else { return Ok(()) };
        let logged = self.recording.folder().and_then(|folder| self.log(&folder, &failure));
        // Standard error of the process that records is that file.
        if self.session_file.is_none() {
            context.console.failure(&failure);
        }
        if let Err(failure) = logged {
            context.console.failure(&failure);
        }
        Ok(())
    }

    fn record(&self, context: &Context) -> Result<(), Failure> {
        if let Some(file) = &self.session_file {
            return self.import(context, file);
        }
        let (event, others) = self.event()?;
        let notified = self.notify(others, &event);
        if let Some(event) = SessionEvent::parse(self.agent, &event)? {
            let file = session_file::find(self.agent, &event)?;
            match self.wait {
                true => self.import(context, &file)?,
                false => self.start(&file)?,
            }
        }
        notified
    }

    /// Returns the event, and the program that Codex would notify without us.
    fn event(&self) -> Result<(Vec<u8>, &[String]), Failure> {
        match (self.agent, self.command.split_last()) {
            (CodingAgent::Codex, Some((event, others))) => Ok((event.clone().into_bytes(), others)),
            (CodingAgent::Codex, None) => {
                Err(Failure::new(Exit::Usage, "hook-input", "Codex gives the event as the last argument"))
            }
            _ => Ok((files::read(Path::new("-"))?, &[])),
        }
    }

    /// Starts the program that Codex notified before our hook was added. It gets the same event.
    fn notify(&self, command: &[String], event: &[u8]) -> Result<(), Failure> {
        let Some((program, arguments)) = command.split_first() else { return Ok(()) };
        let started = Command::new(program).args(arguments).arg(&*String::from_utf8_lossy(event)).spawn();
        started.map(drop).map_err(|error| cannot_start(program, &error))
    }

    /// Starts this program again to record the session, in a process group of its own: the agent may end, and end its
    /// own processes, before the session is recorded.
    fn start(&self, file: &Path) -> Result<(), Failure> {
        let program = std::env::current_exe()?;
        let log = open_log(&self.recording.folder()?)?;
        let arguments = std::env::args_os().skip(1).take_while(|argument| argument != "--");
        Command::new(&program)
            .args(arguments)
            .arg("--session-file")
            .arg(file)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map(drop)
            .map_err(|error| cannot_start(&program.display().to_string(), &error))
    }

    fn import(&self, context: &Context, file: &Path) -> Result<(), Failure> {
        let RecordingArgs { register, trust, service, .. } = &self.recording;
        let recorder = self.recording.recorder()?;
        let folder = self.recording.folder()?;
        files::make_folder(&folder, Access::Ordinary)?;
        let log = register.then(|| CheckpointLog::new(trust.clone(), service.clone()));
        let sessions = file.parent().unwrap_or(Path::new("/"));
        let every = Duration::ZERO;
        let watch = Watch::new(sessions, &folder, every, writing::settings(), recorder, log, PATIENCE)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        watch.record(context, NamedSource { path: file.to_owned(), name, named: true })
    }

    fn log(&self, folder: &Path, failure: &Failure) -> Result<(), Failure> {
        let time = show::time(now());
        let line = format!("{time} {}: {}", self.agent.name(), failure.in_short());
        writeln!(open_log(folder)?, "{}", safe(&line)).map_err(Failure::from)
    }
}

fn open_log(folder: &Path) -> Result<File, Failure> {
    files::make_folder(folder, Access::Ordinary)?;
    let path = folder.join(LOG);
    let is_full = fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_LOG);
    let mut options = fs::OpenOptions::new();
    options.create(true).mode(0o600);
    match is_full {
        true => options.write(true).truncate(true),
        false => options.append(true),
    };
    options.open(&path).map_err(|error| files::unwritable(&path, &error))
}

fn cannot_start(program: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failure, "io", format!("cannot start {program}")).fact("because", error.to_string())
}
