//! Inputs against a promise until the time is up.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::Parser;
use crate::mutate::Mutator;
use crate::promises::Verdict;

/// No input of the size we make may keep a parser busy for longer.
pub const SLOWEST: Duration = Duration::from_secs(5);

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Inputs that were accepted.
    pub accepted: u64,
    /// Inputs that were refused.
    pub refused: u64,
}

/// An input for which a promise was broken.
#[derive(Clone, Debug)]
pub struct Find {
    /// Makes the input again; none if it is one of the known inputs, unchanged.
    pub seed: Option<u64>,
    /// The input.
    pub input: Vec<u8>,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed {
            Some(seed) => write!(f, "seed {seed}")?,
            None => write!(f, "a known input")?,
        }
        write!(f, " ({} bytes): {}", self.input.len(), self.what)
    }
}

/// Tries all known inputs as they are, then inputs number `first`, `first + 1` and so on.
///
/// # Errors
/// With the first input for which the parser broke its promise.
pub fn hunt(parser: Parser, first: u64, budget: Duration) -> Result<Tally, Find> {
    let mutator = Mutator::new(parser);
    let begun = Instant::now();
    let mut tally = Tally::default();
    for input in mutator.seeds() {
        tally.count(attempt(parser, None, input)?);
    }
    for seed in (0..).map(|n| first.wrapping_add(n)) {
        if begun.elapsed() >= budget {
            break;
        }
        tally.count(attempt(parser, Some(seed), &mutator.input(seed))?);
    }
    Ok(tally)
}

/// Tries the one input that a seed makes.
///
/// # Errors
/// When the parser broke its promise.
pub fn replay(parser: Parser, seed: u64) -> Result<Verdict, Find> {
    attempt(parser, Some(seed), &Mutator::new(parser).input(seed))
}

fn attempt(parser: Parser, seed: Option<u64>, input: &[u8]) -> Result<Verdict, Find> {
    let begun = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(|| parser.try_on(input)));
    let find = |what: String| Find { seed, input: input.to_vec(), what };
    match answer {
        Err(panic) => Err(find(message(panic.as_ref()))),
        Ok(_) if begun.elapsed() > SLOWEST => Err(find(format!("took {:?}", begun.elapsed()))),
        Ok(verdict) => Ok(verdict),
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => self.accepted += 1,
            Verdict::Refused => self.refused += 1,
        }
    }
}
