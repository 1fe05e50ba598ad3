//! Token counts of Codex. It writes each count more than once, so only a changed total counts. Some versions state only
//! the total.

use serde_json::{Map, Value};

use crate::entry::Entry;
use crate::native::Native;
use crate::usage::{TokenUsage, count};

/// The counts of a usage object: input, cached, output, reasoning and total.
const NAMES: [&str; 5] =
    ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"];

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

    /// The usage since the last event: what the event states or, if it states only the total, the difference of the
    /// totals.
    fn counted(&mut self, info: &Value) -> Option<TokenUsage> {
        let member = |name: &str| info.get(name).filter(|usage| usage.is_object());
        let (last, total) = (member("last_token_usage"), member("total_token_usage"));
        let Some(total) = total else { return last.map(|last| token_usage(|name| count(last, name))) };
        let before = self.total.replace(total.clone());
        if before.as_ref() == Some(total) {
            return None;
        }
        Some(match last {
            Some(last) => token_usage(|name| count(last, name)),
            None => difference(before.as_ref(), total),
        })
    }
}

/// Returns the usage between two totals. A total that is less than the one before has begun anew.
fn difference(before: Option<&Value>, total: &Value) -> TokenUsage {
    let earlier = |name: &str| before.and_then(|before| count(before, name)).unwrap_or(0);
    let has_begun_anew = NAMES.iter().any(|name| count(total, name).unwrap_or(0) < earlier(name));
    token_usage(|name| {
        let counted = count(total, name)?;
        Some(if has_begun_anew { counted } else { counted.saturating_sub(earlier(name)) })
    })
}

fn token_usage(count_of: impl Fn(&str) -> Option<u64>) -> TokenUsage {
    let [input, cached, output, reasoning, total] = NAMES.map(count_of);
    TokenUsage { input, cached, output, reasoning, total, cost: None }
}
