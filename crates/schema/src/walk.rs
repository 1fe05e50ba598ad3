//! The cost of a check, counted before it starts.
//!
//! A validator applies subschemas to values as often as the schema requires, and a few references can make this number
//! exponential. The walk applies the same subschemas to the same values, only counts them, and stops early. It treats
//! every keyword of every draft as effective, so the count is an upper bound.

use serde_json::{Map, Value};

use crate::Misfit;
use crate::limits::{CHECK_DEPTH, CHECK_STEPS, MATCHED_BYTES, QUICK_STEPS};
use crate::refuse::target;

/// Keywords with a subschema, or a list of them, for the same value.
const HERE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with a subschema for members.
const MEMBERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const ITEMS: [&str; 5] = ["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"];
/// Number of values of an `enum`, or of member names, that count as one step.
const NAMES_A_STEP: usize = 8;
/// Number of bytes of a string that count as one step.
const BYTES_A_STEP: usize = 256;

/// What a check may take.
#[derive(Clone, Copy)]
pub struct Allowance {
    steps: u64,
    /// Bytes of text that are matched with regular expressions.
    matched: u64,
}

impl Allowance {
    /// The bounds of every check.
    pub const FULL: Self = Self { steps: CHECK_STEPS, matched: MATCHED_BYTES };
    /// The bounds of a quick check, which matches nothing with regular expressions.
    pub const QUICK: Self = Self { steps: QUICK_STEPS, matched: 0 };
}

/// Counts the steps of checking the arguments against a schema.
///
/// # Errors
/// [`Misfit::TooCostly`] if there are too many steps, or the nesting is too deep.
pub fn check(document: &Value, arguments: &Value, allowance: Allowance) -> Result<(), Misfit> {
    let Allowance { steps, matched } = allowance;
    let mut walk = Walk { document, steps, matched };
    walk.apply(document, arguments, 0).ok_or(Misfit::TooCostly)
}

/// The remaining allowance. Each method returns `None` when it is used up.
struct Walk<'a> {
    document: &'a Value,
    steps: u64,
    matched: u64,
}

impl Walk<'_> {
    fn apply(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Some(()) };
        if depth >= CHECK_DEPTH {
            return None;
        }
        self.spend_on_keywords(keywords, value)?;
        // For unevaluated properties and items, the validator applies the adjacent keywords a second time.
        let leaves =
            ["unevaluatedProperties", "unevaluatedItems"].iter().any(|name| keywords.contains_key(*name));
        for _ in 0..=usize::from(leaves) {
            self.here(keywords, value, depth + 1)?;
        }
        match value {
            Value::Object(members) => self.members(keywords, members, depth + 1),
            Value::Array(items) => self.items(keywords, items, depth + 1),
            _ => Some(()),
        }
    }

    /// Counts the steps of keywords without subschemas.
    fn spend_on_keywords(&mut self, keywords: &Map<String, Value>, value: &Value) -> Option<()> {
        let listed =
            ["enum", "required", "properties"].iter().filter_map(|name| keywords.get(*name)).map(length);
        self.spend(listed.sum::<usize>() / NAMES_A_STEP)?;
        match value {
            Value::String(text) => {
                self.spend(text.len() / BYTES_A_STEP)?;
                if keywords.contains_key("pattern") {
                    self.matches(text)?;
                }
                Some(())
            }
            Value::Array(items) if keywords.contains_key("uniqueItems") => {
                items.iter().try_for_each(|item| self.spend(1 + size(item) / NAMES_A_STEP))
            }
            _ => Some(()),
        }
    }

    fn here(&mut self, keywords: &Map<String, Value>, value: &Value, depth: usize) -> Option<()> {
        for name in HERE {
            self.each(keywords.get(name), value, depth)?;
        }
        for name in ["dependentSchemas", "dependencies"] {
            let Some(Value::Object(by_name)) = keywords.get(name) else { continue };
            by_name.values().try_for_each(|schema| self.apply(schema, value, depth))?;
        }
        match keywords.get("$ref") {
            Some(Value::String(reference)) => self.apply(target(self.document, reference)?, value, depth),
            _ => Some(()),
        }
    }

    fn members(
        &mut self,
        keywords: &Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Option<()> {
        for (name, value) in members {
            self.spend(1)?;
            if let Some(schema) = keywords.get("properties").and_then(|all| all.get(name)) {
                self.apply(schema, value, depth)?;
            }
            if let Some(Value::Object(by_pattern)) = keywords.get("patternProperties") {
                for schema in by_pattern.values() {
                    self.matches(name)?;
                    self.apply(schema, value, depth)?;
                }
            }
            for keyword in MEMBERS {
                self.each(keywords.get(keyword), value, depth)?;
            }
            if let Some(schema) = keywords.get("propertyNames") {
                self.apply(schema, &Value::String(name.clone()), depth)?;
            }
        }
        Some(())
    }

    fn items(&mut self, keywords: &Map<String, Value>, items: &[Value], depth: usize) -> Option<()> {
        for keyword in ITEMS {
            match keywords.get(keyword) {
                Some(Value::Array(schemas)) => {
                    for (schema, item) in schemas.iter().zip(items) {
                        self.apply(schema, item, depth)?;
                    }
                }
                Some(schema) => items.iter().try_for_each(|item| self.apply(schema, item, depth))?,
                None => {}
            }
        }
        Some(())
    }

    fn each(&mut self, schemas: Option<&Value>, value: &Value, depth: usize) -> Option<()> {
        match schemas {
            Some(Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| self.apply(schema, value, depth))
            }
            Some(schema) => self.apply(schema, value, depth),
            None => Some(()),
        }
    }

    fn matches(&mut self, text: &str) -> Option<()> {
        self.spend(1)?;
        self.matched = self.matched.checked_sub(u64::try_from(text.len()).ok()?)?;
        Some(())
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(u64::try_from(steps).ok()?)?;
        Some(())
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

/// Returns roughly the number of values within a value. Recursion is bounded by the depth of the arguments.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        Value::String(text) => 1 + text.len() / BYTES_A_STEP,
        _ => 1,
    }
}
