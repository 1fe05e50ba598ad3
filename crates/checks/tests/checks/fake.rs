//! A runner that computes outcomes in the test, and remembers its batches.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use checks::{Batch, CheckRequest, Engines, Facility, JobEnd, Report, RunError, RunJobs};
use sandbox::{Call, Ending, Engine, Outcome};
use serde_json::Value;

pub struct Fake<F> {
    engines: Engines,
    answer: F,
    pub batches: Mutex<Vec<Batch>>,
}

impl<F: Fn(&Call) -> JobEnd> Fake<F> {
    pub fn new(answer: F) -> Self {
        let engine = Engine {
            sandbox: "subprocess".into(),
            name: "fake".into(),
            version: "1".into(),
            digests: vec![("fake".into(), format!("sha256:{}", "0".repeat(64)))],
        };
        let kinds = [Facility::Javascript, Facility::Python, Facility::Program, Facility::Solvers];
        let available = kinds.into_iter().map(|kind| (kind, engine.clone())).collect();
        let engines = Engines { available, refused: Vec::new() };
        Self { engines, answer, batches: Mutex::default() }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.batches.lock().unwrap().iter().flat_map(|batch| batch.calls.clone()).collect()
    }
}

impl<F: Fn(&Call) -> JobEnd> RunJobs for Fake<F> {
    fn run_jobs(&self, batch: &Batch) -> Result<Vec<JobEnd>, RunError> {
        self.batches.lock().unwrap().push(batch.clone());
        Ok(batch.calls.iter().map(&self.answer).collect())
    }

    fn engines(&self) -> &Engines {
        &self.engines
    }
}

/// Runs checks that take no time.
pub fn run_checks(request: &CheckRequest, runner: &dyn RunJobs) -> Result<Report, RunError> {
    checks::run_checks(request, runner, &|| Duration::ZERO)
}

pub fn request(value: &Value) -> CheckRequest {
    CheckRequest::parse(value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

pub fn outcome(ending: Ending) -> Outcome {
    Outcome { ending, value: None, stdout: vec![], stderr: vec![], fuel: Some(10), elapsed_ms: 2 }
}

pub fn ended(ending: Ending) -> JobEnd {
    JobEnd::Ran(outcome(ending))
}

pub fn returned(value: &str) -> JobEnd {
    JobEnd::Ran(Outcome { value: Some(value.into()), ..outcome(Ending::Finished) })
}

pub fn wrote(stdout: &str) -> JobEnd {
    JobEnd::Ran(Outcome { stdout: stdout.into(), ..outcome(Ending::Finished) })
}

/// The function and the arguments of a call.
pub fn function(call: &Call) -> (&str, Vec<Value>) {
    match call {
        Call::Function { function, arguments, .. } => (function, serde_json::from_str(arguments).unwrap()),
        Call::Program { .. } => panic!("{call:?} is not a function"),
    }
}

pub fn statuses(report: &Report) -> BTreeMap<&str, &str> {
    report.details.iter().map(|detail| (detail.name.as_str(), detail.status.as_str())).collect()
}
