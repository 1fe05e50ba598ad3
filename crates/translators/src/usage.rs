//! Token usage of a message (section 3.6.6, `token-usage`).

use serde_json::{Map, Number, Value};

/// Token counts; absent ones are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenUsage {
    /// All input tokens, those from a cache included.
    pub input: Option<u64>,
    pub cached: Option<u64>,
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
    pub total: Option<u64>,
    /// Cost in US dollars.
    pub cost: Option<Number>,
}

impl TokenUsage {
    /// The map, or `None` if no count is known.
    pub fn into_value(self) -> Option<Value> {
        let mut members = Map::new();
        let counts = [
            ("input", self.input),
            ("cached", self.cached),
            ("output", self.output),
            ("reasoning", self.reasoning),
            ("total", self.total),
        ];
        for (name, count) in counts {
            if let Some(count) = count {
                members.insert(name.to_owned(), count.into());
            }
        }
        if let Some(cost) = self.cost {
            members.insert("cost".to_owned(), Value::Number(cost));
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

/// Returns a count of a native usage object.
pub(crate) fn count(usage: &Value, name: &str) -> Option<u64> {
    usage.get(name)?.as_u64()
}

/// Adds counts; `None` if none is known.
pub(crate) fn sum<const N: usize>(counts: [Option<u64>; N]) -> Option<u64> {
    counts.into_iter().flatten().reduce(u64::saturating_add)
}
