//! Test cases (tier 0): each runs in a fresh guest, and is compared here.

use sandbox::{Call, Ending, Language, Outcome};

use super::deadline::Deadline;
use super::outcome::{Cause, detail, exit_code, fail, last_error, ran, returned, text_of};
use super::session::Session;
use crate::compare;
use crate::engines::Facility;
use crate::jobs::{JobEnd, RunError, RunJobs};
use crate::limits::DETAIL_BYTES;
use crate::report::{Detail, Report};
use crate::request::CheckRequest;
use crate::request::artifact::Artifact;
use crate::request::cases::{Case, Expected, ExpectedOutput, FunctionCall, TestAction};
use crate::text::shorten;

/// Runs all test cases.
pub(super) fn run(
    request: &CheckRequest,
    cases: &[Case],
    runner: &dyn RunJobs,
    deadline: Deadline<'_>,
) -> Result<Report, RunError> {
    let artifact = request.artifact();
    let facilities: Vec<Facility> = cases.iter().map(|case| facility(case, artifact)).collect();
    let first = facilities.first().copied().unwrap_or(Facility::Program);
    let mut session = Session::open(runner, deadline, first)?;
    let mut details: Vec<Option<Detail>> = vec![None; cases.len()];
    for kind in [Facility::Javascript, Facility::Python, Facility::Program] {
        let of_kind: Vec<usize> = (0..cases.len()).filter(|index| facilities[*index] == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let calls = of_kind.iter().map(|index| call(&cases[*index].action, artifact)).collect();
        let ends = session.run(kind, artifact.files(), calls, request.limits().of_one_run())?;
        for (index, end) in of_kind.into_iter().zip(&ends) {
            details[index] = Some(judge(&cases[index], end, session.comparisons()));
        }
    }
    Ok(session.report(details.into_iter().flatten().collect()))
}

fn facility(case: &Case, artifact: &Artifact) -> Facility {
    match (&case.action, artifact.language()) {
        (TestAction::Function(_), Some(language)) => Facility::functions_of(language),
        _ => Facility::Program,
    }
}

fn call(action: &TestAction, artifact: &Artifact) -> Call {
    match action {
        TestAction::Function(function) => function_call(artifact, function),
        TestAction::Program { arguments, stdin } => {
            let program = match artifact.language() {
                Some(Language::Python) => vec!["python3".to_owned(), artifact.entry().to_owned()],
                _ => vec![format!("./{}", artifact.entry())],
            };
            Call::Program { command: [&program[..], arguments].concat(), stdin: stdin.clone().into_bytes() }
        }
    }
}

/// Returns the call of a function of the artifact's first file.
pub(super) fn function_call(artifact: &Artifact, call: &FunctionCall) -> Call {
    let arguments = jose::jcs::canonical(&call.arguments.iter().cloned().collect());
    Call::Function {
        language: artifact.language().unwrap_or(Language::JavaScript),
        file: artifact.entry().to_owned(),
        function: call.function.clone(),
        arguments: String::from_utf8_lossy(&arguments).into_owned(),
    }
}

fn judge(case: &Case, end: &JobEnd, comparisons: Deadline<'_>) -> Detail {
    let outcome = ran(end).and_then(|outcome| comparisons.check().map(|()| outcome));
    let elapsed = outcome.as_ref().ok().map(|outcome| outcome.elapsed_ms);
    let result = outcome.and_then(|outcome| compare_outcome(&case.expected, outcome));
    let (result, actual) = match result {
        Ok(Found { cause: None, actual }) => (Ok(()), actual),
        Ok(Found { cause: Some(cause), actual }) => (Err(cause), actual),
        Err(cause) => (Err(cause), None),
    };
    let expected = expected_text(&case.expected);
    Detail { expected, actual, ..detail(&case.name, result, elapsed) }
}

/// What came of a run, and why that is not what was expected.
struct Found {
    actual: Option<String>,
    cause: Option<Cause>,
}

fn compare_outcome(expected: &Expected, outcome: &Outcome) -> Result<Found, Cause> {
    match expected {
        Expected::Value(expected) => {
            let value = returned(outcome)?;
            let cause = compare::difference(expected, &value).map(fail);
            Ok(Found { actual: Some(text_of(&value)), cause })
        }
        Expected::Throw(part) => thrown(part, outcome),
        Expected::Exit { stdout, code } => exited(stdout.as_ref(), *code, outcome),
    }
}

fn thrown(part: &str, outcome: &Outcome) -> Result<Found, Cause> {
    let Ending::Threw(message) = &outcome.ending else {
        let value = returned(outcome)?;
        let cause = Some(fail("it returned a value, and did not throw"));
        return Ok(Found { actual: Some(text_of(&value)), cause });
    };
    let cause = match message.contains(part) {
        true => None,
        false => Some(fail("it threw, and the message does not contain the expected text")),
    };
    Ok(Found { actual: Some(shorten(message, DETAIL_BYTES)), cause })
}

fn exited(expected: Option<&ExpectedOutput>, code: i32, outcome: &Outcome) -> Result<Found, Cause> {
    let found = exit_code(outcome)?;
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let cause = match found == code {
        false => Some(format!("the exit code is {found}, expected {code}{}", last_error(outcome))),
        true => match expected {
            None => None,
            Some(ExpectedOutput::Text(text)) if text.as_bytes() == outcome.stdout => None,
            Some(ExpectedOutput::Text(_)) => Some("the standard output differs".to_owned()),
            Some(ExpectedOutput::Json(value)) => json_difference(value, &outcome.stdout),
        },
    };
    let actual = expected.is_some().then(|| shorten(&stdout, DETAIL_BYTES));
    Ok(Found { actual, cause: cause.map(fail) })
}

fn json_difference(expected: &serde_json::Value, stdout: &[u8]) -> Option<String> {
    match compare::parse(stdout) {
        Ok(value) => compare::difference(expected, &value),
        Err(why) => Some(format!("the standard output is not unambiguous JSON: {why}")),
    }
}

fn expected_text(expected: &Expected) -> Option<String> {
    match expected {
        Expected::Value(value) | Expected::Exit { stdout: Some(ExpectedOutput::Json(value)), .. } => {
            Some(text_of(value))
        }
        Expected::Throw(part) => Some(shorten(&format!("throws {part}"), DETAIL_BYTES).trim_end().to_owned()),
        Expected::Exit { stdout: Some(ExpectedOutput::Text(text)), .. } => Some(shorten(text, DETAIL_BYTES)),
        Expected::Exit { stdout: None, code } => Some(format!("exit code {code}")),
    }
}
