//! Conditions written by operators, evaluated without clock, randomness or I/O.
//!
//! A condition is the body of one Rego rule (version 1 syntax) over one document, `input`. The condition
//! `input.record.verdict != "pass"; input.record.tier < 1` holds if all its statements hold, and does not hold if a
//! member that it refers to is absent. Rego also has `import`, other documents, and functions that read the time; a
//! condition has none of these. It is parsed as the body of a fixed rule. Then its syntax tree is walked, and
//! everything that is not on the list of allowed elements is refused, so that a text cannot escape from the rule.
//!
//! The same condition over the same document always has the same result, so that `audit` can repeat a service's
//! decision years later. The only exception is the time limit, so exceeding it is a result of its own
//! ([`EvalError::TimedOut`]) and never `false`. The time is checked between steps of the engine; no function is allowed
//! whose single call can take long or multiply the size of its argument.
//!
//! In Rego, a comparison with an absent member does not hold. A rule that denies must not be evaded by omitting a
//! member, so [`Expression::answer`] distinguishes "does not hold" from "refers to a member that the document does not
//! have". For this, a condition names each member that it reads: by a path from `input`, or from a variable that stands
//! for a part of the document (`x := input.a`, `some x in input.a`, `every x in input.a`). A condition that reads a member
//! in another way is refused, such as `sort(input.a)[0].size` or `input[name]` for a `name` with a value.
//!
//! This crate alone uses the engine (`regorus`), and its interface exposes nothing of it.
//!
//! Not here: the content of the document, and the consequences of a condition (both in the crates that use this one).
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use expression::Expression;
//! use serde_json::json;
//!
//! let condition = Expression::compile(r#"input.record.verdict != "pass"; input.record.tier < 1"#)?;
//! assert!(condition.evaluate(&json!({ "record": { "verdict": "fail", "tier": 0 } }))?);
//! assert!(!condition.evaluate(&json!({ "record": { "verdict": "pass", "tier": 0 } }))?);
//! assert!(Expression::compile("time.now_ns() > 0").is_err());
//! # Ok(())
//! # }
//! ```

mod allowed;
mod error;
mod input;
pub mod limits;
mod members;
mod pattern;
mod source;
mod syntax;

pub use error::{CompileError, EvalError};
pub use input::Input;

use std::sync::{Arc, OnceLock};

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError};

use limits::{EVALUATION_TIME, STEPS_BETWEEN_LOOKS_AT_TIME};
use members::Statement;

/// A compiled condition.
#[derive(Clone)]
pub struct Expression {
    text: String,
    engine: Engine,
    statements: Arc<[Statement]>,
    /// Each statement as a condition of its own, where possible; compiled on first use.
    alone: Arc<OnceLock<Vec<Option<Expression>>>>,
}

/// The result of a condition for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The condition holds.
    Holds,
    /// The condition does not hold, regardless of the members that the document lacks.
    DoesNotHold,
    /// The condition does not hold only because a member that it refers to is absent, or is null in a comparison with a
    /// value.
    MissingMember,
}

impl Expression {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`CompileError`] if the text is not a condition, exceeds the [`limits`], or uses an element that is not allowed.
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
        let statements = members::statements(text, &tree)?.into();
        Ok(Self { text: text.to_owned(), engine, statements, alone: Arc::default() })
    }

    /// Evaluates the condition for a single document.
    ///
    /// # Errors
    /// Those of [`Input::new`] and [`Expression::holds`].
    pub fn evaluate(&self, document: &serde_json::Value) -> Result<bool, EvalError> {
        self.holds(&Input::new(document)?)
    }

    /// Evaluates the condition for a prepared document, which can be shared by several conditions.
    ///
    /// # Errors
    /// [`EvalError::TimedOut`] if it takes too long, [`EvalError::Failed`] if a function gets an argument that it does
    /// not accept.
    pub fn holds(&self, input: &Input) -> Result<bool, EvalError> {
        let mut engine = self.engine.clone();
        engine.set_input(input.value());
        match engine.eval_rule(source::RULE_PATH.to_owned()) {
            Ok(regorus::Value::Undefined) => Ok(false),
            Ok(regorus::Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(EvalError::failed("the condition is not a condition")),
            Err(why) if is_out_of_time(&why) => Err(EvalError::TimedOut),
            Err(why) => Err(EvalError::failed(&source::reason(&why))),
        }
    }

    /// Evaluates the condition and distinguishes absent members from "does not hold": a statement counts against the
    /// condition only if the document has every member that the statement refers to. Members under `not`, except in
    /// a comprehension there, and those read with `object.get` may be absent. A member that is compared with `null` or
    /// passed to a function such as `is_null` may be null.
    ///
    /// # Errors
    /// Those of [`Expression::holds`].
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

    /// Returns the members of the document that the condition refers to, each as a path of names up to the first step
    /// that is not a literal name.
    #[must_use]
    pub fn members(&self) -> Vec<Vec<&str>> {
        self.statements.iter().flat_map(Statement::members).collect()
    }

    /// Compiles each statement as a condition; `None` for one that uses a variable of another statement.
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

    /// Returns the text of the condition.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Expression {
    /// Compares the texts, which determine everything else.
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

/// Returns the engine's syntax tree as JSON.
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
