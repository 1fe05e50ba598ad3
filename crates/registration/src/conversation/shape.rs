//! The CDDL of a conversation record as tables of maps and their members.
//!
//! A test compares them with the draft's CDDL, which `vectors/conversation` contains verbatim. Not here: the envelope,
//! which is a COSE message (`scitt`), and whose definition in the CDDL cannot be satisfied (D1).

/// The name of the member that nests entries.
pub(super) const CHILDREN: &str = "children";

/// A map of the CDDL.
#[derive(Debug)]
pub(super) struct Shape {
    pub name: &'static str,
    /// True if the map ends in `* tstr => any`.
    pub open: bool,
    pub members: &'static [Member],
}

/// A member of a map.
#[derive(Debug)]
pub(super) struct Member {
    pub name: &'static str,
    pub required: bool,
    pub is: Is,
    /// The member that needs this one: without it that member would mean something else, so it may not stay.
    pub needed_by: Option<&'static str>,
}

/// The type of a member's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    Any,
    Text,
    /// Any text, because the CDDL's pattern for URLs matches every string (D4).
    Url,
    /// Any text.
    EntryId,
    /// Any text.
    TraceFormat,
    Unsigned,
    Number,
    Bool,
    Timestamp,
    SessionId,
    /// An entry's `type`, with the values that select this map.
    EntryType(&'static [&'static str]),
    Contributor(&'static [&'static str]),
    Texts,
    OpenMap,
    Map(&'static Shape),
    Maps(&'static Shape),
    Entries,
}

impl Shape {
    /// Returns the member with this name, and its index.
    pub fn member(&self, name: &str) -> Option<(usize, &'static Member)> {
        self.members.iter().enumerate().find(|(_, member)| member.name == name)
    }
}

const fn required(name: &'static str, is: Is) -> Member {
    Member { name, required: true, is, needed_by: None }
}

const fn optional(name: &'static str, is: Is) -> Member {
    Member { name, required: false, is, needed_by: None }
}

/// Without its algorithm a hash would be one of the default algorithm.
const CONTENT_HASH_ALG: Member =
    Member { needed_by: Some("content-hash"), ..optional("content-hash-alg", Is::Text) };

pub(super) static RECORD: Shape = Shape {
    name: "verifiable-agent-record",
    open: true,
    members: &[
        required("version", Is::Text),
        required("id", Is::Text),
        required("session", Is::Map(&SESSION)),
        optional("created", Is::Timestamp),
        optional("file-attribution", Is::Map(&FILE_ATTRIBUTION)),
        optional("vcs", Is::Map(&VCS)),
        optional("recording-agent", Is::Map(&RECORDING_AGENT)),
    ],
};

static SESSION: Shape = Shape {
    name: "session-trace",
    open: true,
    members: &[
        optional("format", Is::Text),
        required("session-id", Is::SessionId),
        optional("session-start", Is::Timestamp),
        optional("session-end", Is::Timestamp),
        required("agent-meta", Is::Map(&AGENT_META)),
        optional("environment", Is::Map(&ENVIRONMENT)),
        required("entries", Is::Entries),
    ],
};

static AGENT_META: Shape = Shape {
    name: "agent-meta",
    open: true,
    members: &[
        required("model-id", Is::Text),
        required("model-provider", Is::Text),
        optional("models", Is::Texts),
        optional("cli-name", Is::Text),
        optional("cli-version", Is::Text),
    ],
};

static RECORDING_AGENT: Shape = Shape {
    name: "recording-agent",
    open: true,
    members: &[required("name", Is::Text), optional("version", Is::Text)],
};

static ENVIRONMENT: Shape = Shape {
    name: "environment",
    open: true,
    members: &[
        required("working-dir", Is::Text),
        optional("vcs", Is::Map(&VCS)),
        optional("sandboxes", Is::Texts),
    ],
};

static VCS: Shape = Shape {
    name: "vcs-context",
    open: true,
    members: &[
        required("type", Is::Text),
        optional("revision", Is::Text),
        optional("branch", Is::Text),
        optional("repository", Is::Text),
    ],
};

static MESSAGE: Shape = Shape {
    name: "message-entry",
    open: true,
    members: &[
        required("type", Is::EntryType(&["user", "assistant"])),
        optional("content", Is::Any),
        optional("timestamp", Is::Timestamp),
        optional("id", Is::EntryId),
        optional("model-id", Is::Text),
        optional("parent-id", Is::EntryId),
        optional("token-usage", Is::Map(&TOKEN_USAGE)),
        optional(CHILDREN, Is::Entries),
    ],
};

static TOOL_CALL: Shape = Shape {
    name: "tool-call-entry",
    open: true,
    members: &[
        required("type", Is::EntryType(&["tool-call"])),
        required("name", Is::Text),
        required("input", Is::Any),
        optional("call-id", Is::Text),
        optional("timestamp", Is::Timestamp),
        optional("id", Is::EntryId),
        optional(CHILDREN, Is::Entries),
    ],
};

static TOOL_RESULT: Shape = Shape {
    name: "tool-result-entry",
    open: true,
    members: &[
        required("type", Is::EntryType(&["tool-result"])),
        required("output", Is::Any),
        optional("call-id", Is::Text),
        optional("status", Is::Text),
        optional("is-error", Is::Bool),
        optional("timestamp", Is::Timestamp),
        optional("id", Is::EntryId),
        optional(CHILDREN, Is::Entries),
    ],
};

static REASONING: Shape = Shape {
    name: "reasoning-entry",
    open: true,
    members: &[
        required("type", Is::EntryType(&["reasoning"])),
        required("content", Is::Any),
        optional("encrypted", Is::Text),
        optional("subject", Is::Text),
        optional("timestamp", Is::Timestamp),
        optional("id", Is::EntryId),
        optional(CHILDREN, Is::Entries),
    ],
};

static EVENT: Shape = Shape {
    name: "event-entry",
    open: true,
    members: &[
        required("type", Is::EntryType(&["system-event"])),
        required("event-type", Is::Text),
        optional("data", Is::OpenMap),
        optional("timestamp", Is::Timestamp),
        optional("id", Is::EntryId),
        optional(CHILDREN, Is::Entries),
    ],
};

static TOKEN_USAGE: Shape = Shape {
    name: "token-usage",
    open: true,
    members: &[
        optional("input", Is::Unsigned),
        optional("output", Is::Unsigned),
        optional("cached", Is::Unsigned),
        optional("reasoning", Is::Unsigned),
        optional("total", Is::Unsigned),
        optional("cost", Is::Number),
    ],
};

static FILE_ATTRIBUTION: Shape =
    Shape { name: "file-attribution-record", open: false, members: &[required("files", Is::Maps(&FILE))] };

static FILE: Shape = Shape {
    name: "file",
    open: false,
    members: &[required("path", Is::Text), required("conversations", Is::Maps(&CONVERSATION))],
};

static CONVERSATION: Shape = Shape {
    name: "conversation",
    open: false,
    members: &[
        optional("url", Is::Url),
        optional("contributor", Is::Map(&CONTRIBUTOR)),
        required("ranges", Is::Maps(&RANGE)),
        optional("related", Is::Maps(&RESOURCE)),
    ],
};

static RANGE: Shape = Shape {
    name: "range",
    open: false,
    members: &[
        required("start-line", Is::Unsigned),
        required("end-line", Is::Unsigned),
        optional("content-hash", Is::Text),
        CONTENT_HASH_ALG,
        optional("contributor", Is::Map(&CONTRIBUTOR)),
    ],
};

static CONTRIBUTOR: Shape = Shape {
    name: "contributor",
    open: false,
    members: &[
        required("type", Is::Contributor(&["human", "ai", "mixed", "unknown"])),
        optional("model-id", Is::Text),
    ],
};

static RESOURCE: Shape =
    Shape { name: "resource", open: false, members: &[required("type", Is::Text), required("url", Is::Url)] };

pub(super) static TRACE_METADATA: Shape = Shape {
    name: "trace-metadata",
    open: false,
    members: &[
        required("session-id", Is::SessionId),
        required("agent-vendor", Is::Text),
        required("trace-format", Is::TraceFormat),
        required("timestamp-start", Is::Timestamp),
        optional("timestamp-end", Is::Timestamp),
        optional("content-hash", Is::Text),
        CONTENT_HASH_ALG,
    ],
};

static ENTRIES: [&Shape; 5] = [&MESSAGE, &TOOL_CALL, &TOOL_RESULT, &REASONING, &EVENT];

/// Returns the map for entries of this `type`.
pub(super) fn entry(entry_type: &str) -> Option<&'static Shape> {
    ENTRIES.into_iter().find(|shape| match shape.members[0].is {
        Is::EntryType(names) => names.contains(&entry_type),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
