//! Programs of Linux under bubblewrap: Python functions, solvers, and any binary that a job brings.
//!
//! A guest has namespaces of its own (users, processes, network, mounts, IPC, host name), sees `/usr` read-only, its files in `/job`,
//! and a bounded `/tmp`; it has no capabilities, a seccomp filter and resource limits. The bound on memory holds for each of at most
//! `processes` processes. Python starts with a fixed hash seed and seed of `random`; its clock is the machine's.
//!
//! An exit code above 128 is read as the signal that bubblewrap reports by it, so `exit(139)` is `Crashed("SIGSEGV")`, as in a shell.
//!
//! Not here: control groups. They would bound the memory of all processes together, and an operator may put the service into one.

mod command;
mod ending;
mod filter;
mod self_test;
mod supervise;
mod tools;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::checks::{check_file_exists, check_files};
use crate::digest::sha256;
use crate::{Call, Engine, Job, Language, Outcome, Sandbox, SandboxError};
use command::Start;
use supervise::{Capture, Exceeded, Feed};
use tools::Tool;

const DRIVER: &[u8] = include_bytes!("driver.py");

/// Arguments of Python for the driver: no site packages, no compiled files.
const PYTHON: [&str; 5] = ["/usr/bin/python3", "-S", "-s", "-B", "/sandbox/driver.py"];

/// Bytes of the status of bubblewrap, two short JSON texts.
const STATUS_LIMIT: usize = 4096;

/// A sandbox for Python functions and for programs of Linux.
pub struct Bwrap {
    engine: Engine,
    bubblewrap: Tool,
    tools: Vec<Tool>,
    seccomp: Vec<u8>,
}

impl Bwrap {
    /// Finds bubblewrap in `/usr/bin`, and the programs that jobs may start.
    pub fn new() -> Result<Self, SandboxError> {
        Self::with_program(Path::new("/usr/bin/bwrap"))
    }

    /// Uses another bubblewrap.
    pub fn with_program(program: &Path) -> Result<Self, SandboxError> {
        let bubblewrap = tools::find("bwrap", program).ok_or_else(|| missing(program, "bubblewrap"))?;
        let prlimit = Path::new("/usr/bin/prlimit");
        if !prlimit.exists() {
            return Err(missing(prlimit, "util-linux"));
        }
        let (tools, seccomp) = (tools::find_all(), filter::filter()?);
        Ok(Self { engine: describe(&bubblewrap, &tools, &seccomp), bubblewrap, tools, seccomp })
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

impl Sandbox for Bwrap {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn supports(&self, call: &Call) -> bool {
        match call {
            Call::Function { language, .. } => *language == Language::Python && self.has_tool("python3"),
            Call::Program { command, .. } => command
                .first()
                .is_some_and(|name| !tools::NAMES.contains(&name.as_str()) || self.has_tool(name)),
        }
    }

    fn run(&self, job: &Job) -> Result<Outcome, SandboxError> {
        check_files(job)?;
        if !self.supports(&job.call) {
            return Err(unsupported(&job.call));
        }
        self.check_unchanged()?;
        let guest = self.start(job)?;
        let begun = Instant::now();
        let ended = guest.wait(job, begun)?;
        ended.outcome(&job.call, begun)
    }

    fn check_unchanged(&self) -> Result<(), SandboxError> {
        std::iter::once(&self.bubblewrap).chain(&self.tools).try_for_each(Tool::check_unchanged)
    }

    fn self_test(&self) -> Result<(), SandboxError> {
        self_test::run(self)
    }
}

impl Bwrap {
    fn start(&self, job: &Job) -> Result<Guest, SandboxError> {
        let (status, status_of_guest) = pipe()?;
        let (channel, channel_of_guest) = pipe()?;
        let (program, own_files, channel_of_guest) = match &job.call {
            Call::Function { .. } => (python(), driver_files(job)?, Some(channel_of_guest)),
            Call::Program { command, .. } => (self.program(job, command)?, Vec::new(), None),
        };
        let start = Start {
            bubblewrap: &self.bubblewrap.path,
            seccomp: &self.seccomp,
            job,
            own_files,
            program,
            channel: channel_of_guest,
            status: status_of_guest,
        };
        let child = command::command(start)?
            .spawn()
            .map_err(|error| io_failed("bubblewrap does not start", &error))?;
        Ok(Guest { child, channel, status })
    }

    /// Returns the command with the path of its program in the guest.
    fn program(&self, job: &Job, command: &[String]) -> Result<Vec<String>, SandboxError> {
        let Some((name, arguments)) = command.split_first() else {
            return Err(SandboxError::Failed("the command of the job is empty".to_owned()));
        };
        let path = match self.tools.iter().find(|tool| tool.name == name) {
            Some(tool) => tool.path.to_string_lossy().into_owned(),
            None => {
                let file = name.strip_prefix("./").unwrap_or(name);
                check_file_exists(job, file)?;
                format!("/job/{file}")
            }
        };
        Ok([&[path], arguments].concat())
    }
}

fn python() -> Vec<String> {
    PYTHON.map(str::to_owned).to_vec()
}

fn driver_files(job: &Job) -> Result<Vec<(&'static str, Vec<u8>)>, SandboxError> {
    let Call::Function { file, function, arguments, .. } = &job.call else { return Ok(Vec::new()) };
    check_file_exists(job, file)?;
    let call = serde_json::json!({ "file": file, "function": function, "arguments": arguments });
    Ok(vec![("/sandbox/driver.py", DRIVER.to_vec()), ("/sandbox/call.json", call.to_string().into_bytes())])
}

/// A guest that runs.
struct Guest {
    child: Child,
    channel: OwnedFd,
    status: OwnedFd,
}

/// What a guest left behind.
struct Ended {
    exceeded: Option<Exceeded>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    channel: Vec<u8>,
    status: Vec<u8>,
}

impl Guest {
    fn wait(mut self, job: &Job, begun: Instant) -> Result<Ended, SandboxError> {
        let limit = usize::try_from(job.limits.output).unwrap_or(usize::MAX);
        let deadline = begun + job.limits.time;
        let supervised = || -> io::Result<Ended> {
            let (stdin, stdout, stderr) =
                (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
            let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
                return Err(io::Error::other("a pipe is missing"));
            };
            let mut stdin = Feed::new(stdin, input(&job.call))?;
            let mut captures = [
                Capture::new(stdout, limit)?,
                Capture::new(stderr, limit)?,
                Capture::new(self.channel, limit.saturating_add(ending::KIND_LIMIT))?,
                Capture::new(self.status, STATUS_LIMIT)?,
            ];
            let exceeded = supervise::supervise(&mut self.child, &mut stdin, &mut captures, deadline)?;
            let [stdout, stderr, channel, status] = captures.map(|capture| capture.bytes);
            Ok(Ended { exceeded, stdout, stderr, channel, status })
        };
        supervised().map_err(|error| io_failed("the guest cannot be supervised", &error))
    }
}

fn input(call: &Call) -> &[u8] {
    match call {
        Call::Program { stdin, .. } => stdin,
        Call::Function { .. } => &[],
    }
}

impl Ended {
    fn outcome(self, call: &Call, begun: Instant) -> Result<Outcome, SandboxError> {
        let (ending, value) = match (self.exceeded, ending::exit_code(&self.status)) {
            (Some(Exceeded::Time), _) => (crate::Ending::OutOfTime, None),
            (Some(Exceeded::Output), _) => (crate::Ending::TooMuchOutput, None),
            (None, None) => {
                return Err(SandboxError::Failed(format!(
                    "bubblewrap: {}",
                    String::from_utf8_lossy(&self.stderr).trim()
                )));
            }
            (None, Some(code)) => match call {
                Call::Function { .. } => ending::of_function(code, &self.channel),
                Call::Program { .. } => (ending::of_code(code), None),
            },
        };
        let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Outcome { ending, value, stdout: self.stdout, stderr: self.stderr, fuel: None, elapsed_ms })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| io_failed("a pipe for the guest", &error.into()))
}

fn describe(bubblewrap: &Tool, tools: &[Tool], seccomp: &[u8]) -> Engine {
    let programs = || std::iter::once(bubblewrap).chain(tools);
    let mut digests: Vec<_> = programs().map(|tool| (tool.name.to_owned(), tool.digest.clone())).collect();
    digests.push(("driver.py".to_owned(), sha256(DRIVER)));
    digests.push(("seccomp filter".to_owned(), sha256(seccomp)));
    Engine {
        sandbox: "subprocess".to_owned(),
        name: "bubblewrap".to_owned(),
        version: programs().map(|tool| tool.version.as_str()).collect::<Vec<_>>().join("; "),
        digests,
    }
}

fn missing(program: &Path, package: &str) -> SandboxError {
    SandboxError::NotIsolated(format!(
        "{} is missing or does not start: install the package {package}",
        program.display()
    ))
}

fn unsupported(call: &Call) -> SandboxError {
    SandboxError::Unsupported(match call {
        Call::Function { language: Language::JavaScript, .. } => "JavaScript functions".to_owned(),
        Call::Function { .. } => "Python functions: /usr/bin/python3 is missing".to_owned(),
        Call::Program { command, .. } => {
            format!("the program {:?}: it is not in /usr/bin", command.first().map_or("", String::as_str))
        }
    })
}

fn io_failed(what: &str, error: &io::Error) -> SandboxError {
    SandboxError::Failed(format!("{what}: {error}"))
}
