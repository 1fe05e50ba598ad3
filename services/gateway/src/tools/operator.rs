//! The tools of a gateway for its operator, who lists and approves them in the evidence store, even while the gateway
//! runs.
//!
//! An approval applies to the description that was listed last when the operator looked. A running gateway sees it with
//! the next decision, and records it.

use admission::tool::{Pin, PinnedBy, ToolFault};
use evidence::{CommitError, StoreError, StreamEditor};
use jiff::Timestamp;
use serde::Serialize;
use vap::digest::Digest;

use crate::config::{Config, Evidence};
use crate::decision_writer::committed_stream::CommittedStream;
use crate::decision_writer::states::{StreamState, tool_stream, tool_streams};
use crate::evidence_store::{EvidenceReader, operator_access};
use crate::limits::TOOLS_PAGE;

/// A tool with its pin, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinnedTool {
    /// The path of the route.
    pub route: String,
    /// The tool's name, as clients call it.
    pub tool: String,
    /// The state of the pin.
    pub state: ToolState,
    /// Start of this state.
    pub since: Option<Timestamp>,
    /// The digest of the description that would be, or was, approved.
    pub digest: Option<Digest>,
    /// The pinned description, if the tool has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The newest description by the server. `None` if it is too long to be kept.
    pub says: Option<String>,
}

/// The state of a tool's pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// The description is pinned as first listed.
    FirstUse,
    /// The description is pinned as an operator approved it.
    Approved,
    /// The description differs from the pinned one.
    Changed,
    /// The tool was listed and is not approved.
    Waiting,
}

impl ToolState {
    /// Returns the word for display.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstUse => "first-use",
            Self::Approved => "approved",
            Self::Changed => "CHANGED",
            Self::Waiting => "waiting",
        }
    }
}

/// The tools to approve.
#[derive(Clone, Debug)]
pub enum ToolSelection {
    /// All tools that are not approved as they are.
    All,
    /// One tool; if a digest is given, only with this description.
    One {
        /// The path of the route.
        route: String,
        /// The tool's name.
        tool: String,
        /// The digest of the description that the operator has looked at.
        digest: Option<String>,
    },
}

/// Errors of listing and approving tools.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The evidence store cannot be read or changed.
    #[error("the evidence: {0}")]
    Store(#[from] StoreError),
    /// The change could not be committed.
    #[error("the evidence: {0}")]
    Commit(CommitError),
    /// No client has listed this tool (the second field) on this route (the first).
    #[error("no client has listed a tool {1:?} on {0}")]
    NoTool(String, String),
    /// The description of this tool has changed; the second field is its digest now.
    #[error("the description of the tool {0:?} has changed: {1}")]
    Moved(String, String),
}

/// Returns every stored tool, by route and name.
///
/// # Errors
/// [`OperatorError::Store`] if the evidence store cannot be read.
pub async fn list(config: &Config) -> Result<Vec<PinnedTool>, OperatorError> {
    let store = operator_access(config).await?;
    let pins = pins(&*store).await;
    store.close().await;
    Ok(pins?.iter().map(PinnedTool::of).collect())
}

/// Approves tools with the descriptions listed last. Returns those that were not approved before.
///
/// # Errors
/// [`OperatorError`] if there is no such tool, its description is not the one looked at, or the store cannot be
/// changed.
pub async fn approve(config: &Config, which: &ToolSelection) -> Result<Vec<PinnedTool>, OperatorError> {
    let store = operator_access(config).await?;
    let approved = match which {
        ToolSelection::All => approve_all(&*store).await,
        ToolSelection::One { route, tool, digest } => {
            approve_one(&*store, route, tool, digest.as_deref()).await.map(Vec::from_iter)
        }
    };
    store.close().await;
    approved
}

/// Returns the fault of a hypothetical call, according to the tool's stored pin. Without an evidence store yet, the
/// tool has no pin.
///
/// # Errors
/// [`OperatorError::Store`] if the evidence store cannot be read.
pub async fn fault(
    config: &Config,
    route: &str,
    tool: &str,
    arguments: &str,
) -> Result<Option<ToolFault>, OperatorError> {
    let Some(rules) = config.route(route).map(|route| route.tools) else { return Ok(None) };
    let pin = match &config.evidence {
        Evidence::Sqlite(path) if !path.exists() => None,
        _ => {
            let (reader, stream) = (EvidenceReader::at(config).await?, tool_stream(route, tool));
            let stored = reader.streams(&[&stream]).await;
            reader.close().await;
            CommittedStream::read(&stream, stored?.pop().flatten().as_ref())?.pin().cloned()
        }
    };
    let described = pin.as_ref().and_then(|pin| pin.in_force(rules.pins)).filter(|_| rules.check_arguments);
    let checked = described.map(|description| super::arguments::checked(description, arguments));
    Ok(rules.fault_of(pin.as_ref(), &checked.unwrap_or_default()))
}

async fn approve_all(store: &dyn StreamEditor) -> Result<Vec<PinnedTool>, OperatorError> {
    let mut approved = Vec::new();
    for pin in pins(store).await? {
        // Only the description read here is approved: a tool that changes meanwhile is an error.
        let digest = pin.newest().map(|description| description.digest.to_string());
        approved.extend(approve_one(store, &pin.route, &pin.tool, digest.as_deref()).await?);
    }
    Ok(approved)
}

async fn approve_one(
    store: &dyn StreamEditor,
    route: &str,
    tool: &str,
    digest: Option<&str>,
) -> Result<Option<PinnedTool>, OperatorError> {
    let stream = tool_stream(route, tool);
    loop {
        let stored = store.streams(&[&stream]).await?.pop().flatten();
        let no_tool = || OperatorError::NoTool(route.to_owned(), tool.to_owned());
        let stored = stored.ok_or_else(no_tool)?;
        let read = CommittedStream::read(&stream, Some(&stored))?;
        let mut pin = read.pin().cloned().ok_or_else(no_tool)?;
        let newest = pin.newest().map(|description| description.digest.to_string()).unwrap_or_default();
        if digest.is_some_and(|digest| digest != newest) {
            return Err(OperatorError::Moved(tool.to_owned(), newest));
        }
        if PinnedTool::of(&pin).state == ToolState::Approved {
            return Ok(None);
        }
        pin.approve(Timestamp::now());
        let pinned = PinnedTool::of(&pin);
        let state = StreamState::Tool(Box::new(pin))
            .running()
            .map_err(|error| StoreError::Refused(error.to_string()))?;
        match store.amend(&stream, stored.version, &state).await {
            Ok(()) => return Ok(Some(pinned)),
            // The tool was listed again meanwhile, or the outcome is unknown: it is read once more.
            Err(CommitError::Conflict(_) | CommitError::MayHaveHappened(_)) => {}
            Err(error) => return Err(OperatorError::Commit(error)),
        }
    }
}

/// Reads all pins, by route and tool.
async fn pins(store: &dyn StreamEditor) -> Result<Vec<Pin>, StoreError> {
    let mut all = Vec::new();
    let mut after = tool_streams().to_owned();
    loop {
        let listed = store.list(Some(&after), TOOLS_PAGE).await?;
        let names: Vec<&str> = listed.iter().map(|listed| listed.stream.as_str()).collect();
        let ours: Vec<&str> =
            names.iter().copied().take_while(|name| name.starts_with(tool_streams())).collect();
        for (name, stored) in ours.iter().zip(store.streams(&ours).await?) {
            all.extend(CommittedStream::read(name, stored.as_ref())?.pin().cloned());
        }
        match ours.last() {
            Some(last) if ours.len() == TOOLS_PAGE => after = (*last).to_owned(),
            _ => break,
        }
    }
    all.sort_by(|a, b| (&a.route, &a.tool).cmp(&(&b.route, &b.tool)));
    Ok(all)
}

impl PinnedTool {
    fn of(pin: &Pin) -> Self {
        let newest = pin.newest();
        let is_changed = pin.changed_at.is_some() || pin.listed.is_some();
        let (state, since) = match &pin.pinned {
            None => (ToolState::Waiting, None),
            Some(_) if is_changed => (ToolState::Changed, pin.changed_at),
            Some(pinned) if pinned.by == PinnedBy::Operator => (ToolState::Approved, Some(pinned.at)),
            Some(pinned) => (ToolState::FirstUse, Some(pinned.at)),
        };
        let was = pin.pinned.as_ref().filter(|_| pin.listed.is_some());
        Self {
            route: pin.route.clone(),
            tool: pin.tool.clone(),
            state,
            since: since.and_then(|since| Timestamp::from_second(since).ok()),
            digest: newest.map(|description| description.digest.clone()),
            was: was.and_then(|pinned| pinned.description.text.clone()),
            says: newest.and_then(|description| description.text.clone()),
        }
    }
}
