//! Facts, and the document for a policy's expressions, of an admitted record.

use data_encoding::HEXLOWER;
use search_terms::limits::MAX_LOOKUPS;
use serde_json::{Value, json};

use super::ConversationRecord;
use super::time::Timestamp;
use crate::facts::Facts;
use crate::limits::{CONVERSATION_NAMES, CONVERSATION_TEXT};
use crate::profile::ProfileRecord;

/// Number of lookups other than those of calls, results, tools and models: the session, and the statement's own.
const OTHER_LOOKUPS: usize = 16;

impl ConversationRecord {
    /// Returns the record without its entries, as the document that a policy's expressions evaluate.
    pub fn document(&self) -> Value {
        let tool = |(name, calls): (&String, &u64)| json!({ "name": name, "calls": calls });
        let tools: Vec<Value> = self.tools.iter().map(tool).collect();
        let time = |time: &Option<Timestamp>| time.as_ref().map(Timestamp::to_json);
        json!({
            "form": self.form.name(),
            "version": self.version,
            "id": self.id,
            "created": time(&self.created),
            "session": {
                "id": self.session.id.to_string(),
                "format": self.session.format,
                "start": time(&self.session.start),
                "end": time(&self.session.end),
            },
            "agent": {
                "model_id": self.agent.model_id,
                "model_provider": self.agent.model_provider,
                "models": self.agent.models,
                "cli_name": self.agent.cli_name,
                "cli_version": self.agent.cli_version,
            },
            "recording_agent": self.recorder.as_ref().map(|(name, version)| json!({ "name": name, "version": version })),
            "entries": self.counts(),
            "tools": tools,
            "files": self.files,
            "previous_record": self.previous,
            "warnings": self.warnings.listed(),
            "warnings_total": self.warnings.total(),
        })
    }

    /// Returns the number of entries of each type, in snake case, and in total.
    fn counts(&self) -> Value {
        let total = self.entries.values().sum::<u64>();
        let each = self.entries.iter().map(|(name, count)| (name.replace('-', "_"), Value::from(*count)));
        Value::Object(each.chain([("total".to_owned(), total.into())]).collect())
    }
}

impl ProfileRecord for ConversationRecord {
    fn facts(&self, facts: &mut Facts) {
        let mut text = |name: &str, value: &str| facts.text(name, short(value));
        text("record_id", &self.id);
        text("record_version", &self.version);
        text("form", self.form.name());
        text("session", &self.session.id.to_string());
        text("model", &self.agent.model_id);
        text("model_provider", &self.agent.model_provider);
        text("content_digest", &sha256(&self.digest));
        for (name, value) in [("agent", &self.agent.cli_name), ("previous_record", &self.previous)] {
            if let Some(value) = value {
                text(name, value);
            }
        }
        for (name, time) in [("session_start", &self.session.start), ("session_end", &self.session.end)] {
            if let Some(time) = time {
                facts.put(name, time.to_json());
            }
        }
        facts.put("entries", self.counts());
        if !self.tools.is_empty() {
            let named = self.tools.keys().take(CONVERSATION_NAMES).map(|name| clean(short(name)));
            facts.put("tools", named.collect());
            facts.put("tools_total", self.tools.len().into());
        }
        if self.warnings.total() > 0 {
            facts.put("warnings", self.warnings.listed().iter().map(|warning| clean(warning)).collect());
            facts.put("warnings_total", self.warnings.total().into());
        }
        if self.findable + self.tools.len() + self.agent.models.len() + OTHER_LOOKUPS > MAX_LOOKUPS {
            facts.put("lookups_truncated", true.into());
        }
    }

    fn document(&self) -> Value {
        ConversationRecord::document(self)
    }
}

fn sha256(digest: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(digest))
}

fn short(text: &str) -> &str {
    text.char_indices().nth(CONVERSATION_TEXT).map_or(text, |(end, _)| &text[..end])
}

/// Replaces U+0000, which not every database stores.
fn clean(text: &str) -> Value {
    text.replace('\0', "\u{fffd}").into()
}
