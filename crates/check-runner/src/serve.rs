//! The runner's side: batches in, ends out.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use checks::{Batch, Engines, Facility, JobEnd};
use sandbox::{Call, Job, Language, SandboxError, Sandboxes};

use crate::limits::{BATCH_LINE_BYTES, MESSAGE_BYTES};
use crate::line;
use crate::wire::{AnswerLine, BatchLine};

/// The reason why a runner ended before its input did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A line is too long or has another form, or reading or writing failed.
    #[error("the runner cannot read a batch or write an answer: {0}")]
    Line(#[from] io::Error),
    /// An engine was replaced since the runner described it.
    #[error("the runner ends: {0}")]
    Engine(#[from] SandboxError),
}

/// Writes the engines, and then answers batches until the input ends. A batch during which an engine was replaced is not
/// answered: its receipt would name an engine that did not run.
///
/// # Errors
/// [`ServeError`] if a line is too long or has another form, if reading or writing fails, or if an engine was replaced.
pub fn serve(
    sandboxes: &Sandboxes,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), ServeError> {
    line::write(&mut output, &engines(sandboxes))?;
    while let Some(batch) = line::read::<BatchLine>(&mut input, BATCH_LINE_BYTES)? {
        let answer = AnswerLine::from(run(sandboxes, batch.into()));
        sandboxes.check_unchanged()?;
        line::write(&mut output, &answer)?;
    }
    Ok(())
}

/// Returns the engine for each kind of run.
fn engines(sandboxes: &Sandboxes) -> Engines {
    let function = |language| Call::Function {
        language,
        file: "main".to_owned(),
        function: "main".to_owned(),
        arguments: "[]".to_owned(),
    };
    let program = |name: &str| Call::Program { command: vec![name.to_owned()], stdin: Vec::new() };
    let kinds = [
        (Facility::Javascript, vec![function(Language::JavaScript)]),
        (Facility::Python, vec![function(Language::Python)]),
        (Facility::Program, vec![program("./main")]),
        (Facility::Solvers, vec![program("z3"), program("cvc5")]),
    ];
    let engine = |calls: &[Call]| {
        let found: Option<Vec<_>> = calls.iter().map(|call| sandboxes.find(call)).collect();
        found?.first().map(|sandbox| sandbox.engine().clone())
    };
    let available: BTreeMap<_, _> =
        kinds.iter().filter_map(|(kind, calls)| Some((*kind, engine(calls)?))).collect();
    let mut refused: Vec<String> = sandboxes.refused().iter().map(ToString::to_string).collect();
    if cfg!(not(feature = "wasm")) && !available.contains_key(&Facility::Javascript) {
        refused.push("JavaScript: this program was built without the feature wasm-sandbox".to_owned());
    }
    Engines { available, refused }
}

fn run(sandboxes: &Sandboxes, batch: Batch) -> Vec<JobEnd> {
    let deadline = Instant::now() + batch.total_time;
    let mut job = Job { files: batch.files, call: no_call(), limits: batch.limits };
    let end = |call| {
        if Instant::now() >= deadline {
            return JobEnd::NotStarted;
        }
        job.call = call;
        match sandboxes.run(&job) {
            Ok(outcome) => JobEnd::Ran(outcome),
            Err(error) => JobEnd::Failed(shortened(error.to_string())),
        }
    };
    batch.calls.into_iter().map(end).collect()
}

/// The call of a job before it has its first one.
fn no_call() -> Call {
    Call::Program { command: Vec::new(), stdin: Vec::new() }
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    message
}

#[cfg(test)]
mod tests {
    use sandbox::{Engine, Outcome, Sandbox};

    use super::*;

    /// The lines of a runner without engines.
    fn lines(input: &str) -> Result<Vec<String>, ServeError> {
        let mut output = Vec::new();
        serve(&Sandboxes::default(), input.as_bytes(), &mut output)?;
        Ok(String::from_utf8(output).unwrap().lines().map(str::to_owned).collect())
    }

    /// A batch of two calls of z3.
    fn batch(total_ms: u64) -> String {
        let limits = r#"{"fuel":1,"memory":1,"output":1,"processes":1,"time_ms":1}"#;
        let call = r#"{"program":{"command":["z3"],"stdin":""}}"#;
        format!(
            r#"{{"facility":"solvers","files":{{}},"calls":[{call},{call}],"limits":{limits},"total_ms":{total_ms}}}"#
        ) + "\n"
    }

    /// A sandbox whose engine was replaced.
    struct Replaced(Engine);

    impl Sandbox for Replaced {
        fn engine(&self) -> &Engine {
            &self.0
        }

        fn supports(&self, _: &Call) -> bool {
            true
        }

        fn run(&self, _: &Job) -> Result<Outcome, SandboxError> {
            Err(SandboxError::Failed("of no interest".to_owned()))
        }

        fn check_unchanged(&self) -> Result<(), SandboxError> {
            Err(SandboxError::Changed("/usr/bin/z3".to_owned()))
        }

        fn self_test(&self) -> Result<(), SandboxError> {
            Ok(())
        }
    }

    #[test]
    fn a_runner_whose_engine_was_replaced_ends_without_an_answer() {
        let mut sandboxes = Sandboxes::default();
        let [sandbox, name, version] = ["subprocess", "fake", "1"].map(str::to_owned);
        sandboxes.add(Ok(Replaced(Engine { sandbox, name, version, digests: Vec::new() })));
        let mut output = Vec::new();
        let ended = serve(&sandboxes, batch(60_000).as_bytes(), &mut output).unwrap_err();
        assert_eq!(ended.to_string(), "the runner ends: /usr/bin/z3 has changed since this process started");
        assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 1, "the engines only");
    }

    #[test]
    fn a_runner_names_its_engines_and_answers_every_call() {
        let lines = lines(&(batch(60_000) + &batch(0))).unwrap();
        assert!(lines[0].starts_with(r#"{"available":{}"#), "{}", lines[0]);
        assert_eq!(lines[1].matches(r#"{"failed":{"message":"#).count(), 2, "{}", lines[1]);
        assert_eq!(lines[2], r#"{"ends":[{"not_started":{}},{"not_started":{}}]}"#);
    }

    #[test]
    fn a_batch_of_another_form_ends_the_runner() {
        for input in ["{}\n", "[\n", "{\"facility\":\"solvers\"}\n", "{"] {
            assert!(lines(input).is_err(), "{input}");
        }
    }
}
