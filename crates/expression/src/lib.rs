//! Conditions that an operator writes, evaluated without clock, randomness or I/O.
//!
//! A condition is the body of one Rego rule (version 1 syntax) over one document, `input`:
//! `input.record.verdict != "pass"; input.record.tier < 1` holds when every statement of it holds,
//! and does not hold where a member that it names is absent. Rego is a language with an `import`,
//! other people's documents, and functions that ask the time: a condition has none of these. It is
//! parsed as the body of our rule, what was parsed is walked, and everything that is not on the list
//! of what a condition may say is refused, so that a text cannot leave the rule it was put into.
//!
//! The same condition over the same document always answers the same: `audit` decides again what a
//! service decided, years later. The one exception is the limit on time, so running into it is an
//! answer of its own ([`EvalError::TimedOut`]) and never `false`. The limit is looked at between
//! steps; no function is allowed whose single call can take long or grow its argument.
//!
//! This is the only crate that knows the engine (`regorus`), and nothing of it is in the interface.
//!
//! Not here: what the document holds, or what follows from a condition (`registration`).

mod allowed;
mod error;
mod input;
pub mod limits;
mod pattern;
mod source;

pub use error::{CompileError, EvalError};
pub use input::Input;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError};

use limits::{EVALUATION_TIME, STEPS_BETWEEN_LOOKS_AT_TIME};

/// A condition that was read and may be asked.
#[derive(Clone)]
pub struct Expression {
    text: String,
    engine: Engine,
}

impl Expression {
    /// Reads a condition.
    ///
    /// # Errors
    /// The text is no condition, or says what a condition may not say.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        source::measure(text)?;
        let mut engine = Engine::new();
        engine.set_strict_builtin_errors(true);
        engine.set_execution_timer_config(timer());
        engine
            .add_policy(source::MODULE.to_owned(), source::module(text))
            .map_err(|why| source::located(text, &why))?;
        let patterns = allowed::walk(text, &tree(&engine)?)?;
        patterns.teach(&mut engine).map_err(|why| source::located(text, &why))?;
        engine
            .compile_with_entrypoint(&source::RULE_PATH.into())
            .map_err(|why| source::located(text, &why))?;
        Ok(Self { text: text.to_owned(), engine })
    }

    /// Whether the condition holds for a document.
    ///
    /// # Errors
    /// As [`Input::new`] and [`Expression::holds`].
    pub fn evaluate(&self, document: &serde_json::Value) -> Result<bool, EvalError> {
        self.holds(&Input::new(document)?)
    }

    /// Whether the condition holds for a document that several conditions are asked about.
    ///
    /// # Errors
    /// It took too long, or a function was given what it cannot take.
    pub fn holds(&self, input: &Input) -> Result<bool, EvalError> {
        let mut engine = self.engine.clone();
        engine.set_input(input.value());
        match engine.eval_rule(source::RULE_PATH.to_owned()) {
            Ok(regorus::Value::Undefined) => Ok(false),
            Ok(regorus::Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(EvalError::failed("the condition is no condition")),
            Err(why) if is_out_of_time(&why) => Err(EvalError::TimedOut),
            Err(why) => Err(EvalError::failed(&source::reason(&why))),
        }
    }

    /// The condition as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Expression {
    /// The text says all of it.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl std::fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Expression").field(&self.text).finish()
    }
}

fn timer() -> ExecutionTimerConfig {
    ExecutionTimerConfig { limit: EVALUATION_TIME, check_interval: STEPS_BETWEEN_LOOKS_AT_TIME }
}

/// What the engine read, as a tree that can be walked.
fn tree(engine: &Engine) -> Result<serde_json::Value, CompileError> {
    let unreadable = |_| CompileError::at_start("the condition is nested too deeply");
    serde_json::from_str(
        &engine.get_ast_as_json().map_err(|_| CompileError::at_start("the condition cannot be read"))?,
    )
    .map_err(unreadable)
}

fn is_out_of_time(why: &impl AsRef<dyn std::error::Error + Send + Sync>) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(why.as_ref());
    while let Some(this) = cause {
        if matches!(this.downcast_ref(), Some(LimitError::TimeLimitExceeded { .. })) {
            return true;
        }
        cause = this.source();
    }
    false
}
