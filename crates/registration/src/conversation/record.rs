//! A conversation record, read.

use std::collections::{BTreeMap, HashSet};

use scitt::header::Header;
use sha2::{Digest, Sha256};

use super::form::{self, Form};
use super::node::{Node, bytes_as_text};
use super::time::Timestamp;
use super::warnings::{self, Warnings};
use super::{entries, shape, soundness, walk};
use crate::violation::Violation;

/// What a record says of a conversation. The entries themselves stay in the payload.
#[derive(Clone, Debug)]
pub struct ConversationRecord {
    /// JSON or CBOR.
    pub form: Form,
    /// The version of the schema.
    pub version: String,
    /// The record's identifier.
    pub id: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// The session.
    pub session: Session,
    /// The agent that conversed.
    pub agent: Agent,
    /// What made the record: name and version.
    pub recorder: Option<(String, Option<String>)>,
    /// How many entries of each type there are, children included.
    pub entries: BTreeMap<&'static str, u64>,
    /// Each tool that was called, and how often.
    pub tools: BTreeMap<String, u64>,
    /// The files that lines are attributed in.
    pub files: Vec<String>,
    /// The record of an earlier checkpoint of this session: `sha256:` and the digest of its payload.
    pub previous: Option<String>,
    /// What looks wrong and is no reason to refuse.
    pub warnings: Warnings,
    /// SHA-256 of the payload.
    pub(super) digest: [u8; 32],
    /// Values under which the record would be found, counted without looking for equal ones.
    pub(super) findable: usize,
    /// The rule of step 9 that it breaks. It is raised after those of step 8.
    pub(super) unsound: Option<Violation>,
}

/// The session that a record traces.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its identifier.
    pub id: SessionId,
    /// "interactive", "autonomous", or another's word.
    pub format: Option<String>,
    /// When it began.
    pub start: Option<Timestamp>,
    /// When it ended.
    pub end: Option<Timestamp>,
}

/// `agent-meta`.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The primary model.
    pub model_id: String,
    /// Who provides it.
    pub model_provider: String,
    /// Every model of the session.
    pub models: Vec<String>,
    /// The tool or framework.
    pub cli_name: Option<String>,
    /// Its version.
    pub cli_version: Option<String>,
}

/// `session-id`: text, or in CBOR a byte string (reading D10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionId {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl SessionId {
    pub(super) fn of(node: &Node<'_>) -> Option<SessionId> {
        match node {
            Node::Text(text) => Some(SessionId::Text(text.to_string())),
            Node::Bytes(bytes) => Some(SessionId::Bytes(bytes.to_vec())),
            _ => None,
        }
    }
}

/// Text as it is, bytes as `b64u:` and their base64url.
impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionId::Text(text) => f.write_str(text),
            SessionId::Bytes(bytes) => f.write_str(&bytes_as_text(bytes)),
        }
    }
}

impl ConversationRecord {
    /// Reads a payload: steps 5 to 7 of the registration policy, and all that is needed for the others.
    pub fn read(header: &Header, payload: &[u8]) -> Result<ConversationRecord, Violation> {
        let (form, node) = form::read(payload)?;
        walk::check(&node, &shape::RECORD)?;
        let mut record = ConversationRecord::of(form, &node);
        record.digest = Sha256::digest(payload).into();
        record.unsound = soundness::check(&node).err();
        let sub = header.claims().and_then(|claims| claims.sub());
        if sub.is_some_and(|sub| sub != record.session.id.to_string()) {
            record.warnings.add("subject-is-not-session", || "/session/session-id".to_owned());
        }
        warnings::look(&node, &mut record.warnings);
        Ok(record)
    }

    /// What a tree says that passed the walk.
    fn of(form: Form, node: &Node<'_>) -> Self {
        let owned = |node: &Node<'_>, name: &str| node.text(name).unwrap_or_default().to_owned();
        let recorder = node.get("recording-agent");
        let files = node.get("file-attribution").map(|node| node.items("files")).unwrap_or_default();
        let session = node.get("session").unwrap_or(&Node::Null);
        let mut record = ConversationRecord {
            form,
            version: owned(node, "version"),
            id: owned(node, "id"),
            created: node.get("created").and_then(Timestamp::of),
            session: Session::of(session),
            agent: Agent::of(session.get("agent-meta").unwrap_or(&Node::Null)),
            recorder: recorder.map(|node| (owned(node, "name"), node.text("version").map(str::to_owned))),
            entries: BTreeMap::new(),
            tools: BTreeMap::new(),
            files: files.iter().map(|file| owned(file, "path")).collect(),
            previous: node.text("previous-record").map(str::to_owned),
            warnings: Warnings::default(),
            digest: [0; 32],
            findable: 0,
            unsound: None,
        };
        let mut calls = HashSet::new();
        entries::each(node, |_, entry| record.count(entry, &mut calls));
        record
    }

    /// `calls` are the call-ids so far: a call and its result are found under one.
    fn count<'n>(&mut self, entry: &'n Node<'n>, calls: &mut HashSet<&'n str>) {
        let Some(name) = entry.text("type").and_then(entries::type_name) else { return };
        *self.entries.entry(name).or_default() += 1;
        if matches!(name, "tool-call" | "tool-result") {
            let new = entry.text("call-id").is_some_and(|call| calls.insert(call));
            self.findable += 1 + usize::from(new);
        }
        if name == "tool-call" {
            let tool = entry.text("name").unwrap_or_default();
            match self.tools.get_mut(tool) {
                Some(calls) => *calls += 1,
                None => drop(self.tools.insert(tool.to_owned(), 1)),
            }
        }
    }
}

impl Session {
    fn of(node: &Node<'_>) -> Session {
        Session {
            id: node.get("session-id").and_then(SessionId::of).unwrap_or(SessionId::Text(String::new())),
            format: node.text("format").map(str::to_owned),
            start: node.get("session-start").and_then(Timestamp::of),
            end: node.get("session-end").and_then(Timestamp::of),
        }
    }
}

impl Agent {
    fn of(node: &Node<'_>) -> Agent {
        let owned = |name: &str| node.text(name).map(str::to_owned);
        Agent {
            model_id: owned("model-id").unwrap_or_default(),
            model_provider: owned("model-provider").unwrap_or_default(),
            models: node.items("models").iter().filter_map(Node::as_text).map(str::to_owned).collect(),
            cli_name: owned("cli-name"),
            cli_version: owned("cli-version"),
        }
    }
}
