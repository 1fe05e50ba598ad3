//! The engines of a runner: what can be checked with them.

use std::collections::BTreeMap;

use sandbox::{Engine, Language};
use serde::{Deserialize, Serialize};

/// A kind of run, which an engine can do or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Facility {
    /// Calls of JavaScript functions.
    Javascript,
    /// Calls of Python functions.
    Python,
    /// Programs with standard input and output.
    Program,
    /// The SMT solvers z3 and cvc5.
    Solvers,
}

impl Facility {
    /// Returns the facility that calls the functions of a language.
    #[must_use]
    pub const fn functions_of(language: Language) -> Self {
        match language {
            Language::JavaScript => Self::Javascript,
            Language::Python => Self::Python,
        }
    }

    /// The name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Javascript => "JavaScript functions",
            Self::Python => "Python functions",
            Self::Program => "programs",
            Self::Solvers => "the SMT solvers z3 and cvc5",
        }
    }
}

/// The engines of a runner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engines {
    /// The engine for each kind of run that is available.
    pub available: BTreeMap<Facility, Engine>,
    /// Why engines are missing: one sentence for each that was not built in or failed its self-test.
    pub refused: Vec<String>,
}

impl Engines {
    /// Returns the engine of a kind of run, if it is available.
    #[must_use]
    pub fn engine(&self, facility: Facility) -> Option<&Engine> {
        self.available.get(&facility)
    }

    /// Returns the tiers that can be run, at least in one language. Tier 1 needs no engine.
    #[must_use]
    pub fn tiers(&self) -> Vec<u8> {
        let has = |any: &[Facility]| any.iter().any(|facility| self.available.contains_key(facility));
        let functions = has(&[Facility::Javascript, Facility::Python]);
        let tiers = [
            (0, functions || has(&[Facility::Program])),
            (1, true),
            (2, functions),
            (3, has(&[Facility::Solvers])),
        ];
        tiers.into_iter().filter(|(_, available)| *available).map(|(tier, _)| tier).collect()
    }
}
