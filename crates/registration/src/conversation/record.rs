//! Parsed conversation records.

use std::collections::{BTreeMap, HashSet};

use scitt::header::Header;
use sha2::{Digest, Sha256};

use super::form::{self, Form};
use super::node::Node;
use super::time::Timestamp;
use super::warnings::{self, Warnings};
use super::{entries, shape, soundness, walk};
use crate::payload::bytes_as_text;
use crate::violation::Violation;

/// A summary of a conversation record. The entries themselves stay in the payload.
#[derive(Clone, Debug)]
pub struct ConversationRecord {
    /// The encoding of the record, JSON or CBOR.
    pub form: Form,
    /// The version of the schema (`version`).
    pub version: String,
    /// The record's identifier (`id`).
    pub id: String,
    /// The time at which the record was created (`created`).
    pub created: Option<Timestamp>,
    /// The recorded session.
    pub session: Session,
    /// The agent in the conversation (`agent-meta`).
    pub agent: Agent,
    /// The name and version of the software that made the record (`recording-agent`).
    pub recorder: Option<(String, Option<String>)>,
    /// The number of entries of each type, including children.
    pub entries: BTreeMap<&'static str, u64>,
    /// The number of calls of each tool.
    pub tools: BTreeMap<String, u64>,
    /// The paths in `file-attribution`.
    pub files: Vec<String>,
    /// The record of an earlier checkpoint of this session (`previous-record`): `sha256:` and the digest of its
    /// payload.
    pub previous: Option<String>,
    /// Inconsistencies that do not refuse the record.
    pub warnings: Warnings,
    /// SHA-256 digest of the payload.
    pub(super) digest: [u8; 32],
    /// Number of search values of the calls and results, at most; equal values may be counted twice.
    pub(super) findable: usize,
    /// The violation of step 9, if any. It is reported after those of step 8.
    pub(super) unsound: Option<Violation>,
}

/// The session of a record (`session`).
#[derive(Clone, Debug)]
pub struct Session {
    /// The session's identifier (`session-id`).
    pub id: SessionId,
    /// The kind of session: "interactive", "autonomous", or another value.
    pub format: Option<String>,
    /// The start of the session (`session-start`).
    pub start: Option<Timestamp>,
    /// The end of the session (`session-end`).
    pub end: Option<Timestamp>,
}

/// The agent of a session (`agent-meta`).
#[derive(Clone, Debug)]
pub struct Agent {
    /// The primary model (`model-id`).
    pub model_id: String,
    /// The provider of the primary model (`model-provider`).
    pub model_provider: String,
    /// All models used in the session.
    pub models: Vec<String>,
    /// The tool or framework (`cli-name`).
    pub cli_name: Option<String>,
    /// The version of the tool or framework (`cli-version`).
    pub cli_version: Option<String>,
}

/// The session's identifier (`session-id`): text, or in CBOR a byte string (reading D10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionId {
    /// A text identifier.
    Text(String),
    /// A byte string identifier, in CBOR only.
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

/// Formats text as it is, and bytes as `b64u:` and their base64url.
impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionId::Text(text) => f.write_str(text),
            SessionId::Bytes(bytes) => f.write_str(&bytes_as_text(bytes)),
        }
    }
}

impl ConversationRecord {
    /// Parses a payload: steps 5 to 7 of the registration policy, and the checks that the later steps report.
    pub fn read(header: &Header, payload: &[u8]) -> Result<ConversationRecord, Violation> {
        let (form, node) = form::read(payload)?;
        walk::check(&node, &shape::RECORD)?;
        let mut record = ConversationRecord::of(form, &node);
        record.digest = Sha256::digest(payload).into();
        record.unsound = soundness::check(&node).err();
        let sub = header.sub();
        if sub.is_some_and(|sub| sub != record.session.id.to_string()) {
            record.warnings.add("subject-is-not-session", || "/session/session-id".to_owned());
        }
        warnings::collect(&node, &mut record.warnings);
        Ok(record)
    }

    /// The inconsistency that refuses the record, if there is one (step 9 of the registration policy).
    pub fn soundness(&self) -> Result<(), Violation> {
        self.unsound.clone().map_or(Ok(()), Err)
    }

    /// Summarizes a tree that the walk over the CDDL has accepted.
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

    /// Counts an entry. `calls` holds the call-ids so far, because a call and its result share one search value.
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
