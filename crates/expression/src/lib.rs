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
//! In Rego a comparison with a member that is absent does not hold. A rule that refuses must not be avoided by leaving a member
//! out, so [`Expression::answer`] tells "does not hold" from "names a member that the document does not have".
//!
//! This is the only crate that knows the engine (`regorus`), and nothing of it is in the interface.
//!
//! Not here: what the document holds, or what follows from a condition (`registration`).

mod allowed;
mod error;
mod input;
pub mod limits;
mod members;
mod pattern;
mod source;

pub use error::{CompileError, EvalError};
pub use input::Input;

use std::sync::{Arc, OnceLock};

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError};

use limits::{EVALUATION_TIME, STEPS_BETWEEN_LOOKS_AT_TIME};
use members::Statement;

/// A condition that was read and may be asked.
#[derive(Clone)]
pub struct Expression {
    text: String,
    engine: Engine,
    statements: Arc<[Statement]>,
    /// Each statement as a condition of its own, if it is one; compiled when it is first needed.
    alone: Arc<OnceLock<Vec<Option<Expression>>>>,
}

/// What a condition says of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It holds.
    Holds,
    /// It does not hold, whatever the members are that the document lacks.
    DoesNotHold,
    /// It does not hold only because a member that it names is missing, or null where a value is compared.
    MissingMember,
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
        let tree = tree(&engine)?;
        let patterns = allowed::walk(text, &tree)?;
        patterns.teach(&mut engine).map_err(|why| source::located(text, &why))?;
        engine
            .compile_with_entrypoint(&source::RULE_PATH.into())
            .map_err(|why| source::located(text, &why))?;
        let statements = members::statements(text, &tree).into();
        Ok(Self { text: text.to_owned(), engine, statements, alone: Arc::default() })
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

    /// Whether the condition holds, where an absent member must not pass for a "no": a statement decides against the condition
    /// only if the document has every member that the statement names. Members below `not`, and those that are looked up with
    /// `object.get`, may be absent; a member that is compared with `null` or given to a function like `is_null` may be null.
    ///
    /// # Errors
    /// As [`Expression::holds`].
    pub fn answer(&self, input: &Input) -> Result<Answer, EvalError> {
        if self.holds(input)? {
            return Ok(Answer::Holds);
        }
        let document = input.value();
        let complete: Vec<bool> =
            self.statements.iter().map(|statement| statement.is_complete(&document)).collect();
        if complete.iter().all(|complete| *complete) {
            return Ok(Answer::DoesNotHold);
        }
        let alone = self.alone.get_or_init(|| self.each_alone());
        for (statement, _) in alone.iter().zip(complete).filter(|(_, complete)| *complete) {
            match statement.as_ref().map(|statement| statement.holds(input)) {
                Some(Ok(false)) => return Ok(Answer::DoesNotHold),
                Some(Err(EvalError::TimedOut)) => return Err(EvalError::TimedOut),
                Some(Ok(true) | Err(EvalError::Failed(_))) | None => {}
            }
        }
        Ok(Answer::MissingMember)
    }

    /// The members of the document that the condition names, each as the names on the way to it, up to the first that is not
    /// written out.
    #[must_use]
    pub fn members(&self) -> Vec<Vec<&str>> {
        self.statements.iter().flat_map(Statement::members).collect()
    }

    /// The statements as conditions; none for one that uses a variable of another statement.
    fn each_alone(&self) -> Vec<Option<Self>> {
        let alone = |statement: &Statement| {
            let alone = Self::compile(statement.text()).ok()?;
            matches!(&*alone.statements, [only] if only.is_same(statement)).then_some(alone)
        };
        match self.statements.len() {
            0 | 1 => Vec::new(),
            _ => self.statements.iter().map(alone).collect(),
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
