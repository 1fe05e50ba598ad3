//! A child process with the stdio transport: one message per line, in both directions.
//!
//! The child runs in a process group of its own, with only the environment variables that are named for it. It is ended
//! as the stdio transport requires: its input is closed, then it gets `SIGTERM`, then it is killed with its whole
//! process group.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child as Process, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::isolation::Confinement;
use crate::limits;
use crate::lines::{Line, as_line, read_line, skip_line};

/// The program of a child process, and its environment and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Further environment variables, with their values.
    pub env: BTreeMap<String, String>,
    /// Names of the gateway's own environment variables that the child inherits.
    pub pass_env: Vec<String>,
    /// The working directory.
    pub folder: Option<PathBuf>,
    /// The maximum number of children at a time.
    pub children: usize,
    /// The sandbox that keeps the child from the gateway's files and memory. `None` runs it with all rights of this
    /// process, for tests only.
    pub confinement: Option<Confinement>,
}

impl Program {
    /// Makes a program with its arguments and default settings.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            pass_env: limits::PASSED_ENV.map(String::from).to_vec(),
            folder: None,
            children: limits::CHILDREN,
            confinement: None,
        }
    }

    fn to_command(&self) -> std::io::Result<Command> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "there is no command"));
        };
        let env = self.environment();
        let mut command = match &self.confinement {
            // The launcher could report a missing program only on its standard error.
            Some(_) if !is_found(program, env.get("PATH"), self.folder.as_deref()) => {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            Some(confinement) => Command::from(confinement.command(&self.command)),
            None => Command::new(program),
        };
        if self.confinement.is_none() {
            command.args(arguments);
        }
        command.env_clear().envs(env);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        Ok(command)
    }

    fn environment(&self) -> BTreeMap<String, OsString> {
        let passed = self.pass_env.iter().filter_map(|name| Some((name.clone(), std::env::var_os(name)?)));
        let mut env: BTreeMap<String, OsString> = passed.collect();
        if let Some(user) = self.confinement.as_ref().and_then(|confinement| confinement.user.as_ref()) {
            let home = user.home.as_ref().map(|home| home.clone().into_os_string());
            env.extend([("USER".to_owned(), OsString::from(&user.name))]);
            env.insert("HOME".to_owned(), home.unwrap_or_else(|| "/".into()));
        }
        env.extend(self.env.iter().map(|(name, value)| (name.clone(), value.into())));
        env
    }
}

/// Returns whether the program exists: at its path (relative to `folder`), or as a name in a folder of the search path.
fn is_found(program: &str, search: Option<&OsString>, folder: Option<&Path>) -> bool {
    if program.contains('/') {
        return folder.unwrap_or(Path::new(".")).join(program).is_file();
    }
    let usual = OsString::from("/bin:/usr/bin");
    std::env::split_paths(search.unwrap_or(&usual)).any(|folder| folder.join(program).is_file())
}

/// A running child process. It is ended on drop.
#[derive(Debug)]
pub struct Child {
    input: mpsc::Sender<Bytes>,
    stop: CancellationToken,
    gone: CancellationToken,
}

/// The messages that a child writes, in order; the channel closes when the child ends.
pub type Lines = mpsc::Receiver<Bytes>;

/// Error: the child has ended, and nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Child {
    /// Starts a child. `name` identifies it in the log.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start(program: &Program, name: &Arc<str>) -> std::io::Result<(Self, Lines)> {
        let mut process = program.to_command()?.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(std::io::Error::other("the streams of the child are missing"));
        };
        let (input, to_write) = mpsc::channel(limits::CHILD_QUEUE);
        let (output, lines) = mpsc::channel(limits::CHILD_QUEUE);
        let child = Self { input, stop: CancellationToken::new(), gone: CancellationToken::new() };
        tokio::spawn(log_stderr(stderr, Arc::clone(name)));
        let talk = Talk { stop: child.stop.clone(), gone: child.gone.clone(), name: Arc::clone(name) };
        tokio::spawn(talk.until_the_end(process, (stdin, to_write), (stdout, output)));
        Ok((child, lines))
    }

    /// Sends a message to the child. Line breaks between the tokens of the message become spaces, because a message is
    /// one line.
    ///
    /// # Errors
    /// [`Gone`] if the child has ended.
    pub async fn write(&self, message: &[u8]) -> Result<(), Gone> {
        self.input.send(as_line(message)).await.map_err(|_| Gone)
    }

    /// Queues a message for the child without waiting, for callers that are not async. If the queue is full, a task
    /// waits for room.
    pub fn write_later(&self, message: &[u8]) {
        if let Err(mpsc::error::TrySendError::Full(line)) = self.input.try_send(as_line(message)) {
            let input = self.input.clone();
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { input.send(line).await });
            }
        }
    }

    /// Requests the end of the child.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns whether the child still accepts messages.
    pub fn is_alive(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Waits until the child does not accept messages any more.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stop.clone().cancelled_owned()
    }

    /// Waits until the process has exited.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Talk {
    stop: CancellationToken,
    gone: CancellationToken,
    name: Arc<str>,
}

impl Talk {
    async fn until_the_end<R: AsyncRead + Unpin>(
        self,
        mut process: Process,
        (stdin, to_write): (ChildStdin, mpsc::Receiver<Bytes>),
        (stdout, output): (R, mpsc::Sender<Bytes>),
    ) {
        // Writing ends when reading ends: otherwise the input would stay open, and the child would not notice.
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = async { tokio::join!(read_lines(stdout, &output, &self.name, &self.stop), write_lines(stdin, to_write)); } => {}
        }
        drop(output);
        end(&mut process, &self.name).await;
        self.gone.cancel();
    }
}

/// Reads messages until the output ends. Lines that are not a message are only logged: many servers print a greeting.
async fn read_lines<R: AsyncRead + Unpin>(
    stdout: R,
    output: &mpsc::Sender<Bytes>,
    name: &Arc<str>,
    stop: &CancellationToken,
) {
    let mut reader = BufReader::with_capacity(64 << 10, stdout);
    loop {
        match read_line(&mut reader, limits::MAX_LINE_BYTES).await {
            Ok(Line::Whole(line)) => {
                if line.first() != Some(&b'{') {
                    tracing::debug!(server = %name, "a line that is not a message: {}", shown(&line));
                } else if output.send(line.into()).await.is_err() {
                    break;
                }
            }
            Ok(Line::TooLong(_)) => {
                tracing::error!(server = %name, "a line of more than {} bytes", limits::MAX_LINE_BYTES);
                break;
            }
            Ok(Line::End) => break,
            Err(error) => {
                tracing::warn!(server = %name, "cannot be read: {error}");
                break;
            }
        }
    }
    stop.cancel();
}

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Ends a child whose input is already closed: waits [`CHILD_GRACE`](limits::CHILD_GRACE), sends `SIGTERM`, waits
/// again, then kills the process group.
async fn end(process: &mut Process, name: &Arc<str>) {
    let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if timeout(limits::CHILD_GRACE, process.wait()).await.is_err() {
        signal(group, rustix::process::Signal::TERM);
        if timeout(limits::CHILD_GRACE, process.wait()).await.is_err() {
            tracing::warn!(server = %name, "does not end: killed");
        }
    }
    signal(group, rustix::process::Signal::KILL);
    match process.wait().await {
        Ok(status) => tracing::info!(server = %name, "ended: {status}"),
        Err(error) => tracing::warn!(server = %name, "its exit status is unknown: {error}"),
    }
}

/// Signals the process group. An error means that the group has ended already.
fn signal(group: Option<rustix::process::Pid>, signal: rustix::process::Signal) {
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

async fn log_stderr<R: AsyncRead + Unpin>(stderr: R, name: Arc<str>) {
    let mut reader = BufReader::new(stderr);
    while let Ok(line) = read_line(&mut reader, limits::MAX_STDERR_LINE_BYTES).await {
        match line {
            Line::Whole(line) => tracing::info!(server = %name, "{}", shown(&line)),
            Line::TooLong(beginning) => {
                tracing::info!(server = %name, "{} …", shown(&beginning));
                if skip_line(&mut reader).await.is_err() {
                    return;
                }
            }
            Line::End => return,
        }
    }
}

/// The part of a line that is logged: without control characters, at most `MAX_LOGGED_LINE` characters.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.chars().filter(|c| !c.is_control()).take(limits::MAX_LOGGED_LINE).collect()
}
