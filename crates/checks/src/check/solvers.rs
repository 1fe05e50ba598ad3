//! Proof obligations (tier 3): two solvers with counted resources, which must agree.
//!
//! The script asserts the negation of the claim, so `unsat` proves it. `unknown` decides nothing: it is an error.

use std::collections::BTreeMap;
use std::fmt;

use sandbox::Call;

use super::deadline::Deadline;
use super::outcome::{Cause, detail, error, exit_code, fail, last_error, ran};
use super::session::Session;
use crate::engines::Facility;
use crate::jobs::{JobEnd, RunError, RunJobs};
use crate::limits::DETAIL_BYTES;
use crate::report::{Detail, Report};
use crate::request::obligation::Obligation;
use crate::request::{CheckRequest, hash_of_bytes};
use crate::text::shorten;

/// The name of the check.
const CHECK: &str = "obligation";
/// The file of the script.
const SCRIPT: &str = "obligation.smt2";

/// Runs both solvers.
pub(super) fn run(
    request: &CheckRequest,
    obligation: &Obligation,
    runner: &dyn RunJobs,
    deadline: Deadline<'_>,
) -> Result<Report, RunError> {
    let mut session = Session::open(runner, deadline, Facility::Solvers)?;
    let files = BTreeMap::from([(SCRIPT.to_owned(), obligation.script.clone().into_bytes())]);
    let limits = request.limits().of_one_run();
    let calls = vec![z3(limits.fuel), cvc5(limits.fuel)];
    let ends = session.run(Facility::Solvers, &files, calls, limits)?;
    let answers: Vec<Answer> = ends.iter().map(Answer::of).collect();
    let [z3, cvc5] = &answers[..] else {
        return Err(RunError::Failed("it answered another number of calls".to_owned()));
    };
    let elapsed = ends.iter().filter_map(|end| ran(end).ok()).map(|outcome| outcome.elapsed_ms).sum();
    let detail = Detail {
        expected: Some("z3: unsat, cvc5: unsat".to_owned()),
        actual: Some(shorten(&format!("z3: {z3}, cvc5: {cvc5}"), DETAIL_BYTES)),
        ..detail(CHECK, agree(z3, cvc5), Some(elapsed))
    };
    Ok(Report { hashes: models(z3, cvc5), ..session.report(vec![detail]) })
}

/// Returns the call of z3, which ends after a number of its resource units, and writes a model if there is one.
fn z3(fuel: u64) -> Call {
    program(&["z3", &format!("rlimit={fuel}"), "-model", "-smt2", SCRIPT])
}

/// Returns the call of cvc5, likewise.
fn cvc5(fuel: u64) -> Call {
    program(&["cvc5", "--lang=smt2", &format!("--rlimit={fuel}"), "--dump-models", SCRIPT])
}

fn program(command: &[&str]) -> Call {
    Call::Program { command: command.iter().map(|&word| word.to_owned()).collect(), stdin: Vec::new() }
}

/// The answer of a solver.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Unsat,
    /// Satisfiable, with the model as the solver writes it.
    Sat(String),
    /// No answer, and why.
    Unknown(String),
}

impl Answer {
    fn of(end: &JobEnd) -> Self {
        Self::read(end).unwrap_or_else(|cause| Self::Unknown(cause.message))
    }

    fn read(end: &JobEnd) -> Result<Self, Cause> {
        let outcome = ran(end)?;
        let code = exit_code(outcome)?;
        let output = String::from_utf8_lossy(&outcome.stdout);
        let (answer, rest) = output.split_once('\n').unwrap_or((&output, ""));
        match (answer.trim(), code) {
            ("unsat", 0) => Ok(Self::Unsat),
            ("sat", 0) => Ok(Self::Sat(rest.to_owned())),
            ("unknown", 0) => Err(error("unknown")),
            (other, _) => Err(error(format!("no answer ({}){}", other.trim(), last_error(outcome)))),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsat => f.write_str("unsat"),
            Self::Sat(_) => f.write_str("sat"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

fn agree(z3: &Answer, cvc5: &Answer) -> Result<(), Cause> {
    match (z3, cvc5) {
        (Answer::Unsat, Answer::Unsat) => Ok(()),
        (Answer::Sat(model), Answer::Sat(_)) => {
            Err(fail(format!("the claim does not hold; z3's counterexample is {}", one_line(model))))
        }
        (Answer::Unsat, Answer::Sat(_)) | (Answer::Sat(_), Answer::Unsat) => {
            Err(error("the solvers contradict each other"))
        }
        _ => Err(error("a solver has no answer, so the claim is neither proved nor refuted")),
    }
}

/// Returns a model with single spaces.
fn one_line(model: &str) -> String {
    model.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the hashes of both models as the solvers write them, if both have one.
fn models(z3: &Answer, cvc5: &Answer) -> BTreeMap<String, String> {
    match (z3, cvc5) {
        (Answer::Sat(z3), Answer::Sat(cvc5)) => BTreeMap::from([
            ("model_z3".to_owned(), hash_of_bytes(z3.as_bytes())),
            ("model_cvc5".to_owned(), hash_of_bytes(cvc5.as_bytes())),
        ]),
        _ => BTreeMap::new(),
    }
}
