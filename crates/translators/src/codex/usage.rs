//! Token counts of Codex. It writes each count more than once, so only a changed total counts.

use serde_json::{Map, Value};

use crate::entry::Entry;
use crate::native::Native;
use crate::usage::{TokenUsage, count};

/// Reader of `token_count` events, which remembers the last total.
#[derive(Default)]
pub(super) struct Counter {
    total: Option<Value>,
}

impl Counter {
    /// Makes an event with the usage since the last one, if the total has changed.
    pub fn entry(&mut self, mut event: Native) -> Entry {
        event.take("type");
        let mut data = Map::new();
        let usage = event.get("info").and_then(|info| self.counted(info)).and_then(TokenUsage::into_value);
        if let Some(usage) = usage {
            data.insert("token-usage".to_owned(), usage);
        }
        Entry::event("token_count", data).native(event)
    }

    fn counted(&mut self, info: &Value) -> Option<TokenUsage> {
        let total = info.get("total_token_usage")?;
        if self.total.as_ref() == Some(total) {
            return None;
        }
        self.total = Some(total.clone());
        info.get("last_token_usage").map(token_usage)
    }
}

fn token_usage(last: &Value) -> TokenUsage {
    TokenUsage {
        input: count(last, "input_tokens"),
        cached: count(last, "cached_input_tokens"),
        output: count(last, "output_tokens"),
        reasoning: count(last, "reasoning_output_tokens"),
        total: count(last, "total_tokens"),
        cost: None,
    }
}
