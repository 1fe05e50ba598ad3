//! The runs of one request: batches that fit the runner's bounds, and the sums over them.

use std::collections::BTreeMap;

use sandbox::{Call, Engine, Limits};

use super::deadline::Deadline;
use crate::engines::Facility;
use crate::jobs::{Batch, JobEnd, RunError, RunJobs};
use crate::limits::{BATCH_INPUT, BATCH_OUTPUT, COMPARISON_TIME};
use crate::report::{Detail, Report};

/// The runs of one request.
pub(super) struct Session<'a> {
    runner: &'a dyn RunJobs,
    deadline: Deadline<'a>,
    /// The end of the time for comparisons.
    comparisons: Deadline<'a>,
    engine: Engine,
    fuel_used: Option<u64>,
    elapsed_ms: u64,
}

impl<'a> Session<'a> {
    /// Opens a session for runs of a kind.
    pub(super) fn open(
        runner: &'a dyn RunJobs,
        deadline: Deadline<'a>,
        facility: Facility,
    ) -> Result<Self, RunError> {
        let engine = engine(runner, facility)?.clone();
        Ok(Self { runner, deadline, comparisons: deadline, engine, fuel_used: None, elapsed_ms: 0 })
    }

    /// Runs calls into files, each with these bounds.
    pub(super) fn run(
        &mut self,
        facility: Facility,
        files: &BTreeMap<String, Vec<u8>>,
        calls: Vec<Call>,
        limits: Limits,
    ) -> Result<Vec<JobEnd>, RunError> {
        engine(self.runner, facility)?;
        let mut ends = Vec::new();
        let mut rest = &calls[..];
        while !rest.is_empty() {
            let (calls, later) = rest.split_at(batch_length(rest, &limits));
            rest = later;
            let left = self.deadline.left();
            if left.is_zero() {
                ends.extend(calls.iter().map(|_| JobEnd::NotStarted));
                continue;
            }
            let batch =
                Batch { facility, files: files.clone(), calls: calls.to_vec(), limits, total_time: left };
            let ended = self.runner.run_jobs(&batch)?;
            self.comparisons = self.deadline.at_least(COMPARISON_TIME);
            if ended.len() != calls.len() {
                let why = format!("calls that it answered: {} of {}", ended.len(), calls.len());
                return Err(RunError::Failed(why));
            }
            ended.iter().for_each(|end| self.add(end));
            ends.extend(ended);
        }
        Ok(ends)
    }

    /// Returns the end of the request's time.
    pub(super) fn deadline(&self) -> Deadline<'a> {
        self.deadline
    }

    /// Returns the end of the time for comparisons. What came back from a batch is judged even if the batch used up the time
    /// of the request: otherwise one slow run would hide that others returned wrong values.
    pub(super) fn comparisons(&self) -> Deadline<'a> {
        self.comparisons
    }

    fn add(&mut self, end: &JobEnd) {
        let JobEnd::Ran(outcome) = end else { return };
        self.elapsed_ms = self.elapsed_ms.saturating_add(outcome.elapsed_ms);
        if let Some(fuel) = outcome.fuel {
            self.fuel_used = Some(self.fuel_used.unwrap_or_default().saturating_add(fuel));
        }
    }

    /// Returns the report of the session.
    pub(super) fn report(self, details: Vec<Detail>) -> Report {
        Report {
            details,
            engine: self.engine,
            fuel_used: self.fuel_used,
            seed: None,
            cases: None,
            hashes: BTreeMap::new(),
            execution_ms: self.elapsed_ms,
        }
    }
}

/// Returns how many of these calls, at least one, the next batch has: as many as fit the runner's lines.
fn batch_length(calls: &[Call], limits: &Limits) -> usize {
    let by_output = usize::try_from(BATCH_OUTPUT / (3 * limits.output).max(1)).unwrap_or(usize::MAX);
    let mut bytes = 0;
    let by_input = calls.iter().take_while(|call| {
        bytes += input_bytes(call);
        bytes <= BATCH_INPUT
    });
    by_input.take(by_output).count().max(1)
}

fn input_bytes(call: &Call) -> usize {
    match call {
        Call::Function { arguments, .. } => arguments.len(),
        Call::Program { command, stdin } => command.iter().map(String::len).sum::<usize>() + stdin.len(),
    }
}

fn engine(runner: &dyn RunJobs, facility: Facility) -> Result<&Engine, RunError> {
    let engines = runner.engines();
    engines
        .engine(facility)
        .ok_or_else(|| RunError::Unavailable { facility: facility.name(), refused: engines.refused.clone() })
}
