//! Meaning of a run's end for a check.
//!
//! Work that throws, crashes, or uses up fuel, memory or output fails: it does so on every machine. Work that uses up its
//! wall time may be slow or on a slow machine, so the check is an error. So is work that is killed: the kernel kills guests if
//! memory is short, also because of another guest.

use sandbox::{Ending, Outcome};
use serde_json::Value;

use crate::compare;
use crate::jobs::JobEnd;
use crate::limits::DETAIL_BYTES;
use crate::report::{Detail, Status};
use crate::text::shorten;

/// How work crashed that was killed. The kernel kills in the same way as a process that kills itself.
const KILLED: &str = "SIGKILL";

/// The reason why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) status: Status,
    pub(super) message: String,
}

/// Returns the cause that the work does not fulfil a check.
pub(super) fn fail(message: impl Into<String>) -> Cause {
    Cause { status: Status::Fail, message: message.into() }
}

/// Returns the cause that a check could not be decided.
pub(super) fn error(message: impl Into<String>) -> Cause {
    Cause { status: Status::Error, message: message.into() }
}

/// Returns the outcome of a call, if its guest ran.
pub(super) fn ran(end: &JobEnd) -> Result<&Outcome, Cause> {
    match end {
        JobEnd::Ran(outcome) => Ok(outcome),
        JobEnd::Failed(why) => Err(error(format!("the sandbox failed: {why}"))),
        JobEnd::NotStarted => Err(out_of_time()),
    }
}

/// Returns the cause that the time of the request was used up before a check.
pub(super) fn out_of_time() -> Cause {
    error("not checked: the time of all checks (limits.total_ms) was used up")
}

/// Returns the value that a function returned.
pub(super) fn returned(outcome: &Outcome) -> Result<Value, Cause> {
    match exit_code(outcome)? {
        0 => {}
        code => return Err(fail(format!("the program ended with exit code {code}"))),
    }
    let text = outcome.value.as_deref().ok_or_else(|| fail("it returned no JSON value"))?;
    compare::parse(text.as_bytes())
        .map_err(|why| fail(format!("it returned no unambiguous JSON value: {why}")))
}

/// Returns the exit code of a program.
pub(super) fn exit_code(outcome: &Outcome) -> Result<i32, Cause> {
    match &outcome.ending {
        Ending::Finished => Ok(0),
        Ending::Exited(code) => Ok(*code),
        Ending::Threw(message) => Err(fail(format!("it threw: {message}"))),
        Ending::NotLoaded(why) => Err(fail(format!("the function cannot be called: {why}"))),
        Ending::NotJson(why) => Err(fail(format!("it returned a value that is not one JSON text: {why}"))),
        Ending::OutOfFuel => Err(fail("it used up its fuel (limits.fuel)")),
        Ending::OutOfMemory => Err(fail("it used up its memory (limits.memory_bytes)")),
        Ending::TooMuchOutput => Err(fail("it wrote more than allowed (limits.output_bytes)")),
        Ending::OutOfTime => Err(error("it used up its wall time (limits.time_ms)")),
        Ending::Crashed(how) if how == KILLED => {
            Err(error("it was killed (SIGKILL), by itself or because the machine's memory was short"))
        }
        Ending::Crashed(how) => Err(fail(format!("it crashed: {how}{}", last_error(outcome)))),
    }
}

/// Returns the last line of standard error, which says why most programs end, such as `MemoryError`.
pub(super) fn last_error(outcome: &Outcome) -> String {
    let text = String::from_utf8_lossy(&outcome.stderr);
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("; standard error ends with: {}", line.trim()),
        None => String::new(),
    }
}

/// Creates the detail of a check; texts are shortened.
pub(super) fn detail(name: &str, result: Result<(), Cause>, elapsed_ms: Option<u64>) -> Detail {
    let (status, message) = match result {
        Ok(()) => (Status::Pass, None),
        Err(cause) => (cause.status, Some(shorten(&cause.message, DETAIL_BYTES))),
    };
    Detail { name: name.to_owned(), status, expected: None, actual: None, message, elapsed_ms }
}

/// Returns a value as a text for a detail: its canonical form, shortened.
pub(super) fn text_of(value: &Value) -> String {
    shorten(&String::from_utf8_lossy(&jose::jcs::canonical(value)), DETAIL_BYTES)
}
