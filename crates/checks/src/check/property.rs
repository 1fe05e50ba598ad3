//! Properties (tier 2): inputs from a seed, a condition over what comes of them, and the smallest counterexample.

use expression::Input;
use serde_json::{Map, Value};

use super::cases::function_call;
use super::conditions::holds;
use super::deadline::Deadline;
use super::outcome::{Cause, detail, fail, ran, returned, text_of};
use super::session::Session;
use crate::engines::Facility;
use crate::generate::{Inputs, Seed};
use crate::jobs::{JobEnd, RunError, RunJobs};
use crate::limits::{CASES_A_BATCH, DETAIL_BYTES, SHRINK_RUNS, SHRINKS_A_BATCH};
use crate::report::{Detail, Report, Status};
use crate::request::CheckRequest;
use crate::request::cases::FunctionCall;
use crate::request::properties::Property;
use crate::shrink::smaller_arguments;
use crate::text::shorten;

/// Checks all properties.
pub(super) fn run(
    request: &CheckRequest,
    properties: &[Property],
    runner: &dyn RunJobs,
    deadline: Deadline<'_>,
) -> Result<Report, RunError> {
    let language = request.artifact().language();
    let facility = language.map_or(Facility::Program, Facility::functions_of);
    let seed = Seed::of(request.hashes());
    let mut session = Session::open(runner, deadline, facility)?;
    let (mut details, mut cases) = (Vec::new(), 0);
    for (index, property) in (0..).zip(properties) {
        let inputs = Inputs::new(seed, index, &property.arguments, property.cases);
        let mut check = Check { request, facility, property, session: &mut session, elapsed_ms: 0, cases: 0 };
        details.push(check.run(inputs)?);
        cases += check.cases;
    }
    Ok(Report { seed: Some(seed.hex()), cases: Some(cases), ..session.report(details) })
}

/// The check of one property.
struct Check<'a, 's> {
    request: &'a CheckRequest,
    facility: Facility,
    property: &'a Property,
    session: &'s mut Session<'a>,
    elapsed_ms: u64,
    /// The number of cases that were run.
    cases: u64,
}

/// A case that does not fulfil the property, or that could not be decided.
#[derive(Clone)]
struct Counterexample {
    arguments: Vec<Value>,
    /// The arguments, the output, and the output of the second call, as far as there are any.
    document: Value,
    cause: Cause,
}

impl Check<'_, '_> {
    fn run(&mut self, inputs: Inputs<'_>) -> Result<Detail, RunError> {
        match self.search(inputs)? {
            None => Ok(self.detail(Ok(()), None)),
            Some((number, found)) if found.cause.status == Status::Error => {
                let message = format!("case {number}: {}", found.cause.message);
                Ok(self.detail(Err(Cause { message, ..found.cause }), Some(&found)))
            }
            Some((number, found)) => self.failed(number, found),
        }
    }

    /// Returns the first case that fails, with its number; if none does, the first that could not be decided.
    fn search(&mut self, mut inputs: Inputs<'_>) -> Result<Option<(u64, Counterexample)>, RunError> {
        let (mut undecided, mut numbers) = (None, 1_u64..);
        while undecided.is_none() || self.session.deadline().check().is_ok() {
            let batch: Vec<Vec<Value>> = inputs.by_ref().take(CASES_A_BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let ends = self.call_function(&batch)?;
            self.cases += ends.iter().filter(|end| **end != JobEnd::NotStarted).count() as u64;
            for (found, number) in self.judge(batch, &ends)?.zip(numbers.by_ref()) {
                match found {
                    Some(found) if found.cause.status == Status::Fail => return Ok(Some((number, found))),
                    Some(found) => drop(undecided.get_or_insert((number, found))),
                    None => {}
                }
            }
        }
        Ok(undecided)
    }

    fn failed(&mut self, number: u64, found: Counterexample) -> Result<Detail, RunError> {
        let (smallest, how) = match self.shrink(&found)? {
            Some((smallest, runs)) => {
                (smallest, format!("the smallest counterexample after more runs ({runs}) has"))
            }
            None => (
                found,
                "it was not made smaller, because a smaller one could not be decided, and has".to_owned(),
            ),
        };
        let message = format!(
            "case {number} of {}: {}; {how} the arguments {}",
            self.property.cases,
            smallest.cause.message,
            text_of(&smallest.arguments.iter().cloned().collect()),
        );
        Ok(self.detail(Err(fail(message)), Some(&smallest)))
    }

    /// Returns the smallest counterexample that is found with [`SHRINK_RUNS`] runs, and their number; `None` if a run could
    /// not be decided: what is found then depends on the speed of the machine.
    fn shrink(&mut self, found: &Counterexample) -> Result<Option<(Counterexample, usize)>, RunError> {
        let (mut smallest, mut runs) = (found.clone(), 0);
        loop {
            match self.first_smaller(&smallest, &mut runs)? {
                Some(smaller) if smaller.cause.status == Status::Fail => smallest = smaller,
                Some(_) => return Ok(None),
                None => return Ok(Some((smallest, runs))),
            }
        }
    }

    /// Returns the first simpler case that does not pass.
    fn first_smaller(
        &mut self,
        found: &Counterexample,
        runs: &mut usize,
    ) -> Result<Option<Counterexample>, RunError> {
        let property = self.property;
        let mut candidates = smaller_arguments(&property.arguments, &found.arguments);
        loop {
            let count = SHRINKS_A_BATCH.min(SHRINK_RUNS - *runs);
            let batch: Vec<Vec<Value>> = candidates.by_ref().take(count).collect();
            if batch.is_empty() {
                return Ok(None);
            }
            *runs += batch.len();
            let ends = self.call_function(&batch)?;
            if let Some(smaller) = self.judge(batch, &ends)?.flatten().next() {
                return Ok(Some(smaller));
            }
        }
    }

    /// Calls the function with the arguments of each case.
    fn call_function(&mut self, batch: &[Vec<Value>]) -> Result<Vec<JobEnd>, RunError> {
        let property = self.property;
        self.call(&property.function, batch.to_vec())
    }

    /// Judges cases by the ends of their calls; each that does not pass is a counterexample.
    fn judge(
        &mut self,
        batch: Vec<Vec<Value>>,
        ends: &[JobEnd],
    ) -> Result<impl Iterator<Item = Option<Counterexample>>, RunError> {
        let outputs: Vec<Result<Value, Cause>> = ends.iter().map(|end| returned(ran(end)?)).collect();
        let again = self.call_again(&outputs)?;
        Ok(batch.into_iter().zip(outputs).zip(again).map(|((arguments, output), again)| {
            let (document, result) = self.evaluate(&arguments, output, again);
            Some(Counterexample { arguments, document, cause: result.err()? })
        }))
    }

    /// Calls the second function with each output, if the property has one.
    fn call_again(
        &mut self,
        outputs: &[Result<Value, Cause>],
    ) -> Result<Vec<Option<Result<Value, Cause>>>, RunError> {
        let Some(function) = self.property.again.clone() else { return Ok(vec![None; outputs.len()]) };
        let inputs = outputs.iter().filter_map(|output| Some(vec![output.as_ref().ok()?.clone()]));
        let ends = self.call(&function, inputs.collect())?;
        let mut ends = ends.into_iter();
        let mut next = || ends.next().map(|end| returned(ran(&end)?));
        Ok(outputs.iter().map(|output| if output.is_ok() { next() } else { None }).collect())
    }

    fn call(&mut self, function: &str, arguments: Vec<Vec<Value>>) -> Result<Vec<JobEnd>, RunError> {
        let artifact = self.request.artifact();
        let call =
            |arguments| function_call(artifact, &FunctionCall { function: function.to_owned(), arguments });
        let calls = arguments.into_iter().map(call).collect();
        let limits = self.request.limits().of_one_run();
        let ends = self.session.run(self.facility, artifact.files(), calls, limits)?;
        let elapsed = ends.iter().filter_map(|end| ran(end).ok()).map(|outcome| outcome.elapsed_ms);
        self.elapsed_ms += elapsed.sum::<u64>();
        Ok(ends)
    }

    fn evaluate(
        &self,
        arguments: &[Value],
        output: Result<Value, Cause>,
        again: Option<Result<Value, Cause>>,
    ) -> (Value, Result<(), Cause>) {
        let mut document = Map::from_iter([("arguments".to_owned(), arguments.iter().cloned().collect())]);
        for (name, value) in [("output", Some(output)), ("again", again)] {
            match value {
                None => {}
                Some(Ok(value)) => drop(document.insert(name.to_owned(), value)),
                Some(Err(cause)) => return (document.into(), Err(cause)),
            }
        }
        let document = Value::from(document);
        let holds = || holds(&self.property.condition, &Input::new(&document));
        let result = self.session.comparisons().check().and_then(|()| holds());
        (document, result)
    }

    fn detail(&self, result: Result<(), Cause>, found: Option<&Counterexample>) -> Detail {
        Detail {
            expected: Some(shorten(self.property.condition.text(), DETAIL_BYTES)),
            actual: found.map(|found| text_of(&found.document)),
            ..detail(&self.property.name, result, Some(self.elapsed_ms))
        }
    }
}
