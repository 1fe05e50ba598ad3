//! The document that conditions are evaluated for; its size is checked before the engine gets it.

use serde_json::Value;

use crate::error::EvalError;
use crate::limits::{INPUT_DEPTH, INPUT_TEXT_BYTES, INPUT_VALUES};

/// A document in the engine's form, converted once for several conditions.
#[derive(Clone, Debug)]
pub struct Input(regorus::Value);

impl Input {
    /// Converts a document.
    ///
    /// # Errors
    /// [`EvalError::Failed`] if the document exceeds [`INPUT_DEPTH`], [`INPUT_VALUES`] or [`INPUT_TEXT_BYTES`].
    pub fn new(document: &Value) -> Result<Self, EvalError> {
        Measure::default().add(document, 1)?;
        Ok(Self(engine_value(document)))
    }

    pub(crate) fn value(&self) -> regorus::Value {
        self.0.clone()
    }
}

#[derive(Default)]
struct Measure {
    values: usize,
    text: usize,
}

impl Measure {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), EvalError> {
        self.values += 1;
        if depth > INPUT_DEPTH {
            return Err(EvalError::failed(&format!("the document is nested more than {INPUT_DEPTH} deep")));
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.text += text.len(),
            Value::Array(items) => {
                for item in items {
                    self.add(item, depth + 1)?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.text += name.len();
                    self.add(member, depth + 1)?;
                }
            }
        }
        if self.values > INPUT_VALUES || self.text > INPUT_TEXT_BYTES {
            return Err(EvalError::failed("the document is larger than conditions are asked about"));
        }
        Ok(())
    }
}

fn engine_value(value: &Value) -> regorus::Value {
    match value {
        Value::Null => regorus::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => engine_number(number),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(engine_value).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            let pairs = members.iter().map(|(name, member)| (name.as_str().into(), engine_value(member)));
            pairs.collect::<std::collections::BTreeMap<regorus::Value, regorus::Value>>().into()
        }
    }
}

fn engine_number(number: &serde_json::Number) -> regorus::Value {
    if let Some(number) = number.as_u64() {
        number.into()
    } else if let Some(number) = number.as_i64() {
        number.into()
    } else {
        number.as_f64().map_or(regorus::Value::Undefined, Into::into)
    }
}
