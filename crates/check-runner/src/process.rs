//! The signer's side: starts runners, hands out batches, and kills a runner that misbehaves.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use checks::{Batch, CheckRequest, Engines, JobEnd, Report, RunChecks, RunError, RunJobs, run_checks};

use crate::limits::{ANSWER_LINE_BYTES, GRACE, IDLE_RUNNERS, START_TIME};
use crate::line;
use crate::wire::{AnswerLine, BatchLine};

/// The running program, even if its file was replaced since it started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The reason why no runner could be started.
#[derive(Debug, thiserror::Error)]
#[error("the runner of checks cannot be started: {0}")]
pub struct StartError(#[from] io::Error);

/// Runs checks in runner processes, one for each request at a time. Runners are kept for later requests: their start
/// takes seconds, and guests are isolated from each other by the sandboxes.
#[derive(Debug)]
pub struct RunnerProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    engines: Engines,
    idle: Mutex<Vec<Runner>>,
}

impl RunnerProcess {
    /// Starts this program again as a runner: `tabellion vrf run-checks`.
    ///
    /// # Errors
    /// [`StartError`] if it does not start or does not name its engines.
    pub fn start() -> Result<Self, StartError> {
        Self::start_program(OWN_PROGRAM.into(), vec!["vrf".into(), "run-checks".into()])
    }

    /// Starts another program as a runner.
    ///
    /// # Errors
    /// [`StartError`] if it does not start or does not name its engines.
    pub fn start_program(program: PathBuf, arguments: Vec<OsString>) -> Result<Self, StartError> {
        let (runner, engines) = Runner::start(&program, &arguments)?;
        Ok(Self { program, arguments, engines, idle: Mutex::new(vec![runner]) })
    }

    /// Takes an idle runner, or starts one. Its engines must be those of the first.
    fn take(&self) -> io::Result<Runner> {
        if let Some(runner) = self.take_idle() {
            return Ok(runner);
        }
        let (runner, engines) = Runner::start(&self.program, &self.arguments)?;
        match engines == self.engines {
            true => Ok(runner),
            false => Err(io::Error::other("its engines have changed since this service started")),
        }
    }

    /// Takes an idle runner. Those that have ended, as the kernel ends some if memory is short, are dropped.
    fn take_idle(&self) -> Option<Runner> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find_map(Runner::running)
    }

    fn keep(&self, runner: Runner) {
        let mut idle = self.idle();
        if idle.len() < IDLE_RUNNERS {
            idle.push(runner);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Runner>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunJobs for RunnerProcess {
    fn run_jobs(&self, batch: &Batch) -> Result<Vec<JobEnd>, RunError> {
        let failed = |error: io::Error| RunError::Failed(error.to_string());
        let mut runner = self.take().map_err(failed)?;
        let ends = runner.run(batch).map_err(failed)?;
        self.keep(runner);
        Ok(ends)
    }

    fn engines(&self) -> &Engines {
        &self.engines
    }
}

impl RunChecks for RunnerProcess {
    fn run(&self, request: &CheckRequest) -> Result<Report, RunError> {
        let begun = Instant::now();
        run_checks(request, self, &|| begun.elapsed())
    }

    fn engines(&self) -> &Engines {
        &self.engines
    }
}

/// The error for a runner whose output ends where an answer is expected.
fn ended() -> io::Error {
    io::Error::other("the runner ended without an answer; its reason is in the log of the service")
}

/// A runner process, which is killed when this value is dropped.
#[derive(Debug)]
struct Runner {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Runner {
    fn start(program: &Path, arguments: &[OsString]) -> io::Result<(Self, Engines)> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let mut runner = Self { child, input, output: BufReader::new(output) };
        let engines = runner.within(START_TIME, |_, output| line::read(output, ANSWER_LINE_BYTES))?;
        Ok((runner, engines.ok_or_else(ended)?))
    }

    /// Returns the runner, unless its process has ended.
    fn running(mut self) -> Option<Self> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    fn run(&mut self, batch: &Batch) -> io::Result<Vec<JobEnd>> {
        let time = batch.total_time.saturating_add(batch.limits.time).saturating_add(GRACE);
        let answer = self.within(time, |input, output| {
            line::write(input, &BatchLine::from(batch))?;
            line::read::<AnswerLine>(output, ANSWER_LINE_BYTES)
        })?;
        let answer = answer.ok_or_else(ended)?;
        answer.ends().ok_or_else(|| io::Error::other("a returned value is not UTF-8"))
    }

    /// Exchanges lines with the runner, and kills it if that takes longer than `time`: its pipes then close.
    fn within<T>(
        &mut self,
        time: Duration,
        exchange: impl FnOnce(&mut ChildStdin, &mut BufReader<ChildStdout>) -> io::Result<T>,
    ) -> io::Result<T> {
        let Self { child, input, output } = self;
        let (done, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watchdog = scope.spawn(move || {
                let late = ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
                if late { child.kill().map(|()| late) } else { Ok(late) }
            });
            let result = exchange(input, output);
            drop(done);
            match watchdog.join() {
                Ok(Ok(false)) => result,
                Ok(Ok(true)) => Err(io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(io::Error::other("the watchdog panicked")),
            }
        })
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use checks::Facility;
    use sandbox::Limits;

    use super::*;

    /// A runner that is this shell script.
    fn script(text: &str) -> Result<RunnerProcess, StartError> {
        RunnerProcess::start_program("/bin/sh".into(), vec!["-c".into(), text.into()])
    }

    const GREETING: &str = r#"echo '{"available":{},"refused":["none"]}'"#;

    fn batch() -> Batch {
        Batch {
            facility: Facility::Program,
            files: BTreeMap::new(),
            calls: Vec::new(),
            limits: Limits { fuel: 1, memory: 1, output: 1, processes: 1, time: Duration::ZERO },
            total_time: Duration::ZERO,
        }
    }

    fn failure(answer: &str) -> String {
        let runner = script(&format!("{GREETING}; read batch; {answer}")).unwrap();
        runner.run_jobs(&batch()).unwrap_err().to_string()
    }

    #[test]
    fn a_runner_that_does_not_greet_is_not_used() {
        for text in ["exit 1", "echo hello", r#"echo '{"available":{}}'"#, "printf '{'"] {
            assert!(script(text).is_err(), "{text}");
        }
        let runner = script(&format!("{GREETING}; read batch")).unwrap();
        assert_eq!(RunJobs::engines(&runner).refused, ["none"]);
    }

    #[test]
    fn an_answer_of_another_form_is_an_error_and_ends_the_runner() {
        assert!(failure("exit 0").contains("ended without an answer"));
        assert!(failure("echo '{\"ends\":[],\"more\":1}'").contains("more"));
        assert!(failure("echo '{\"ends\":[],\"ends\":[]}'").contains("second member"));
        assert!(failure("printf '{\"ends\":['").contains("end of file"));
    }

    #[test]
    fn a_runner_is_used_again_and_replaced_after_a_failure() {
        let answer = r#"read batch; echo '{"ends":[]}'"#;
        let runner = script(&format!("{GREETING}; {answer}; {answer}; read batch")).unwrap();
        let mut results = (0..4).map(|_| runner.run_jobs(&batch()).is_ok());
        assert!(results.by_ref().take(2).all(|worked| worked));
        assert_eq!(results.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_runner_that_ended_while_it_was_idle_fails_no_request() {
        let runner = script(&format!("{GREETING}; read batch; echo '{{\"ends\":[]}}'")).unwrap();
        for _ in 0..2 {
            assert!(runner.run_jobs(&batch()).is_ok());
            runner.idle().iter_mut().for_each(|idle| assert!(idle.child.wait().unwrap().success()));
        }
    }

    #[test]
    fn a_runner_that_does_not_answer_in_time_is_killed() {
        let arguments: Vec<OsString> = vec!["-c".into(), format!("{GREETING}; read batch; read more").into()];
        let (mut runner, _) = Runner::start(Path::new("/bin/sh"), &arguments).unwrap();
        let answer = runner.within(Duration::from_millis(20), |_, output| {
            line::read::<AnswerLine>(output, ANSWER_LINE_BYTES)
        });
        assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!runner.child.wait().unwrap().success());
    }
}
