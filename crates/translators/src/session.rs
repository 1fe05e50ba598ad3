//! Sessions as the readers find them (section 3.4 of the draft).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::entry::Entry;

/// The value of a required member that the native format does not state.
const UNKNOWN: &str = "unknown";

/// A session of a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub id: String,
    pub start: Option<String>,
    pub end: Option<String>,
    pub models: Models,
    pub provider: Option<String>,
    pub cli_name: Option<String>,
    pub cli_version: Option<String>,
    pub working_dir: Option<String>,
    /// SHA-256 digest of the path of the working folder in hex, if the format states nothing else about it.
    pub root_digest: Option<String>,
    pub vcs: Option<Vcs>,
    /// Members of the native session that have no counterpart.
    pub native: Map<String, Value>,
    pub entries: Vec<Entry>,
    /// The `file-attribution`.
    pub attribution: Option<Value>,
    /// What was verified about the hash chain of the source.
    pub hash_chain: Option<Value>,
}

/// The models of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    /// Each model once, in the order of their first use.
    all: Vec<String>,
    known: HashSet<String>,
    last: Option<String>,
}

/// The version control context (`vcs-context`), of git.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vcs {
    pub revision: Option<String>,
    pub branch: Option<String>,
    pub repository: Option<String>,
}

impl Models {
    pub fn add(&mut self, model: &str) {
        if self.known.insert(model.to_owned()) {
            self.all.push(model.to_owned());
        }
        self.last = Some(model.to_owned());
    }

    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }
}

impl Session {
    /// Serializes the session as `session-trace`.
    pub fn into_value(self) -> Value {
        let mut agent = Map::new();
        agent.insert("model-id".to_owned(), self.models.last().unwrap_or(UNKNOWN).into());
        agent.insert("model-provider".to_owned(), self.provider.unwrap_or_else(|| UNKNOWN.to_owned()).into());
        if !self.models.all.is_empty() {
            agent.insert("models".to_owned(), json!(self.models.all));
        }
        put(&mut agent, "cli-name", self.cli_name);
        put(&mut agent, "cli-version", self.cli_version);
        let mut session = Map::new();
        session.insert("session-id".to_owned(), self.id.into());
        session.insert("agent-meta".to_owned(), Value::Object(agent));
        put(&mut session, "session-start", self.start);
        put(&mut session, "session-end", self.end);
        if let Some(folder) = self.working_dir {
            session.insert("environment".to_owned(), json!({ "working-dir": folder }));
        }
        if !self.native.is_empty() {
            session.insert("native".to_owned(), Value::Object(self.native));
        }
        let entries = self.entries.into_iter().map(Entry::into_value).collect();
        session.insert("entries".to_owned(), Value::Array(entries));
        Value::Object(session)
    }
}

impl Vcs {
    /// Serializes the context. That it is git may be all that is known.
    pub fn into_value(self) -> Value {
        let mut members = Map::new();
        put(&mut members, "revision", self.revision);
        put(&mut members, "branch", self.branch);
        put(&mut members, "repository", self.repository);
        members.insert("type".to_owned(), "git".into());
        Value::Object(members)
    }
}

fn put(members: &mut Map<String, Value>, name: &str, value: Option<String>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value.into());
    }
}
