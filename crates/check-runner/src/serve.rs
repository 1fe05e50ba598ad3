//! The runner's side: batches in, ends out.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use checks::{Batch, Engines, Facility, JobEnd};
use sandbox::{Call, Job, Language, Sandboxes};

use crate::limits::{BATCH_LINE_BYTES, MESSAGE_BYTES};
use crate::line;
use crate::wire::{AnswerLine, BatchLine};

/// The reason why a runner ended before its input did.
#[derive(Debug, thiserror::Error)]
#[error("the runner cannot read a batch or write an answer: {0}")]
pub struct ServeError(#[from] io::Error);

/// Writes the engines, and then answers batches until the input ends.
///
/// # Errors
/// [`ServeError`] if a line is too long or has another form, or if reading or writing fails.
pub fn serve(
    sandboxes: &Sandboxes,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), ServeError> {
    line::write(&mut output, &engines(sandboxes))?;
    while let Some(batch) = line::read::<BatchLine>(&mut input, BATCH_LINE_BYTES)? {
        line::write(&mut output, &AnswerLine::from(run(sandboxes, batch.into())))?;
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
    use super::*;

    /// The lines of a runner without engines.
    fn lines(input: &str) -> Result<Vec<String>, ServeError> {
        let mut output = Vec::new();
        serve(&Sandboxes::default(), input.as_bytes(), &mut output)?;
        Ok(String::from_utf8(output).unwrap().lines().map(str::to_owned).collect())
    }

    #[test]
    fn a_runner_names_its_engines_and_answers_every_call() {
        let limits = r#"{"fuel":1,"memory":1,"output":1,"processes":1,"time_ms":1}"#;
        let calls =
            r#"[{"program":{"command":["z3"],"stdin":""}},{"program":{"command":["z3"],"stdin":""}}]"#;
        let batch = |total| {
            format!(
                "{{\"facility\":\"solvers\",\"files\":{{}},\"calls\":{calls},\"limits\":{limits},\"total_ms\":{total}}}\n"
            )
        };
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
