//! The stored states of streams: sessions, and the gateway's own streams.
//!
//! A session is stored under its id. The gateway's own streams have the prefix `unbound:`, which no session id may have
//! those that hold no records of calls have `unbound:.`.

use admission::approval::Question;
use admission::session::{Account, AgreedTerms, ReservationId, RunningState, Session};
use admission::tool::Pin;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use jose::json::JsonError;
use roa::envelope::Envelope;
use roa::registry::{Registry, RegistryVersion};
use roa::text::{Sha256Digest, Text};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use vap::message::UNBOUND;
use vap::record_key::StreamKey;

use super::error::WriterError;
use crate::authority::EnvelopeState;

/// The stream of the registered Verdict keys.
pub const KEYS_STREAM: &str = "unbound:.keys";
/// The stream that holds the claims on state tokens that were returned outside a session (V-26).
pub const STATES_STREAM: &str = "unbound:.states";
/// Prefix of the streams that count pinned tools; the digest of the route's path follows.
const CATALOGUES: &str = "unbound:.tools:";
/// Prefix of the streams of pinned tools; the digest of route and tool name follows.
const TOOLS: &str = "unbound:.tool:";
/// Prefix of the streams of accounts; the account key of `admission` follows.
const ACCOUNTS: &str = "unbound:.principal:";
/// The stream of the time since which the uses of AgentROA envelopes are stored.
pub const ENVELOPES_SINCE: &str = "unbound:.roa-since";
/// Prefix of the streams of the highest registry positions; the digest of the registry's name follows.
const REGISTRIES: &str = "unbound:.roa-registry:";
/// Prefix of the streams of the states of AgentROA envelopes; the digest of envelope and session follows.
const ENVELOPES: &str = "unbound:.roa:";
/// Prefix of the streams of registered delegation chains, one record each; the digest of the chain follows.
const CHAINS: &str = "unbound:.roa-chain:";
/// Prefix of the streams of execution receipts; the name of the instance follows.
const RECEIPTS: &str = "unbound:.aer:";
/// Prefix of the streams of questions for approvers; the id of the question follows.
pub const QUESTIONS: &str = "unbound:.question:";

/// The state of a stream.
#[derive(Clone, Debug)]
pub enum StreamState {
    /// A session.
    Session(Box<SessionState>),
    /// The gateway's own stream, or a client stream: records that belong to no session.
    Unbound(UnboundState),
    /// A principal's account.
    Account(Account),
    /// The Verdict keys that were registered last.
    Keys(RegisteredKeys),
    /// The number of pinned tools of a route.
    Catalogue(ToolCount),
    /// The pin of a tool.
    Tool(Box<Pin>),
    /// A question for approvers.
    Question(Box<StoredQuestion>),
    /// The state of an AgentROA envelope.
    Envelope(Box<EnvelopeState>),
    /// The time since which the uses of envelopes are stored.
    EnvelopesSince(EnvelopesSince),
    /// The highest version of a registry that was in force.
    Registry(HighestRegistry),
    /// The execution receipts of an instance.
    Receipts(ReceiptCount),
}

/// A session, with the writer's own data about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionState {
    /// The session as `admission` knows it.
    pub session: Session,
    /// Reservations held while a judge or a person is asked.
    pub asking: Vec<QuestionReservation>,
    /// `true` if the session closes as soon as no call is in flight.
    pub ending: bool,
}

/// A reservation that is held for a call while a judge or a person is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionReservation {
    /// The reservation's id in the session.
    pub held: ReservationId,
    /// The instance that asks.
    pub instance: String,
    /// Time after which the question cannot be open any more, in Unix seconds.
    pub until: u64,
}

/// The state of an instance's own stream, or of a client stream: records that belong to no session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnboundState {
    /// The secret key of the commitments in its records (4.10).
    pub key: StreamKey,
    /// Number of forwarded calls without an outcome.
    pub open: u64,
    /// `true` if the stream closes as soon as no call is in flight.
    pub ending: bool,
}

/// A question for approvers, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredQuestion {
    /// The question as it was asked.
    pub question: Question,
    /// The approver's signed answer, as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// `true` if the answer is consumed, or the question withdrawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// The Verdict keys that were registered last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisteredKeys {
    /// SHA-256 of the canonical JWK Set, in hexadecimal.
    pub digest: String,
}

/// The time since which the uses of AgentROA envelopes are stored: what was issued before may have been presented
/// without being noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopesSince {
    /// The time in milliseconds since the Unix epoch.
    pub since: u64,
}

/// The highest version of a registry that was in force at a gateway on the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HighestRegistry {
    /// The epoch.
    pub epoch: u64,
    /// The sequence number in the epoch.
    pub sequence: u64,
    /// The digest of its content.
    pub content: Sha256Digest,
}

impl From<&Registry> for HighestRegistry {
    fn from(registry: &Registry) -> Self {
        let RegistryVersion { epoch, sequence } = registry.version();
        Self { epoch, sequence, content: registry.content_digest() }
    }
}

impl HighestRegistry {
    /// Returns the position of the version.
    pub const fn version(self) -> RegistryVersion {
        RegistryVersion { epoch: self.epoch, sequence: self.sequence }
    }
}

/// The number of execution receipts of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptCount {
    /// The number.
    pub receipts: u64,
}

/// The number of pinned tools of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCount {
    /// The number, at most `PINNED_TOOLS`.
    pub tools: usize,
}

/// The changing part of a [`SessionState`], as stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunningPart {
    running: RunningState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asking: Vec<QuestionReservation>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ending: bool,
}

/// A borrowed [`RunningPart`], for serializing.
#[derive(Serialize)]
struct RunningPartRef<'a> {
    running: &'a RunningState,
    #[serde(skip_serializing_if = "<[QuestionReservation]>::is_empty")]
    asking: &'a [QuestionReservation],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ending: bool,
}

impl StreamState {
    /// Parses a stored state; the stream's name determines the kind. `None` if the state is empty.
    ///
    /// # Errors
    /// [`JsonError`] if the bytes are not a state of this kind.
    pub fn read(name: &str, agreed: Option<&Bytes>, running: &Bytes) -> Result<Option<Self>, JsonError> {
        if running.is_empty() {
            return Ok(None);
        }
        let state = match name {
            KEYS_STREAM => Self::Keys(read(running)?),
            ENVELOPES_SINCE => Self::EnvelopesSince(read(running)?),
            name if name.starts_with(REGISTRIES) => Self::Registry(read(running)?),
            name if name.starts_with(ENVELOPES) => Self::Envelope(Box::new(read(running)?)),
            name if name.starts_with(RECEIPTS) => Self::Receipts(read(running)?),
            name if name.starts_with(CATALOGUES) => Self::Catalogue(read(running)?),
            name if name.starts_with(TOOLS) => Self::Tool(Box::new(read(running)?)),
            name if name.starts_with(QUESTIONS) => Self::Question(read(running)?),
            name if name.starts_with(ACCOUNTS) => Self::Account(read(running)?),
            name if name.starts_with(UNBOUND) => Self::Unbound(read(running)?),
            _ => {
                let agreed: AgreedTerms = read(agreed.unwrap_or(&Bytes::new()))?;
                let RunningPart { running, asking, ending } = read(running)?;
                Self::Session(Box::new(SessionState { session: Session { agreed, running }, asking, ending }))
            }
        };
        Ok(Some(state))
    }

    /// Serializes the part of the state that changes with every call.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if serializing fails, which does not happen.
    pub fn running(&self) -> Result<Bytes, WriterError> {
        match self {
            Self::Session(state) => write(&RunningPartRef {
                running: &state.session.running,
                asking: &state.asking,
                ending: state.ending,
            }),
            Self::Unbound(unbound) => write(unbound),
            Self::Account(account) => write(account),
            Self::Keys(keys) => write(keys),
            Self::Catalogue(catalogue) => write(catalogue),
            Self::Tool(pin) => write(pin),
            Self::Question(stored) => write(stored),
            Self::Envelope(envelope) => write(envelope),
            Self::EnvelopesSince(since) => write(since),
            Self::Registry(highest) => write(highest),
            Self::Receipts(count) => write(count),
        }
    }

    /// Serializes the part that seldom changes: [`AgreedTerms`] for a session, empty for other states.
    ///
    /// # Errors
    /// As for [`running`](Self::running).
    pub fn agreed(&self) -> Result<Bytes, WriterError> {
        match self {
            Self::Session(state) => write(&state.session.agreed),
            Self::Unbound(_)
            | Self::Account(_)
            | Self::Keys(_)
            | Self::Catalogue(_)
            | Self::Tool(_)
            | Self::Question(_)
            | Self::Envelope(_)
            | Self::EnvelopesSince(_)
            | Self::Registry(_)
            | Self::Receipts(_) => Ok(Bytes::new()),
        }
    }
}

impl UnboundState {
    /// A new state with a random key.
    ///
    /// # Errors
    /// [`WriterError::Unsigned`] if the system provides no randomness.
    pub fn generate() -> Result<Self, WriterError> {
        Ok(Self { key: StreamKey::new(random()?), open: 0, ending: false })
    }
}

/// Returns the stream of an account.
pub fn account_stream(key: &str) -> String {
    format!("{ACCOUNTS}{key}")
}

/// Returns whether this is the stream of an account.
pub fn is_account_stream(name: &str) -> bool {
    name.starts_with(ACCOUNTS)
}

/// Returns the stream that counts a route's pinned tools.
pub fn catalogue_stream(route: &str) -> String {
    format!("{CATALOGUES}{}", HEXLOWER.encode(&Sha256::digest(route.as_bytes())))
}

/// Returns the stream of a pinned tool.
pub fn tool_stream(route: &str, tool: &str) -> String {
    let named = jose::jcs::canonical(&serde_json::json!([route, tool]));
    format!("{TOOLS}{}", HEXLOWER.encode(&Sha256::digest(&named)))
}

/// Returns the prefix of the streams of all pinned tools.
pub const fn tool_streams() -> &'static str {
    TOOLS
}

/// Returns whether this is the stream of a pinned tool.
pub fn is_tool_stream(name: &str) -> bool {
    name.starts_with(TOOLS)
}

/// Returns whether operator commands or other gateways change a stream while the gateway runs. Then it is remembered only
/// for a moment, and a decision's commit says on which version it relied.
pub fn is_changed_by_others(name: &str) -> bool {
    is_tool_stream(name) || name.starts_with(REGISTRIES)
}

/// Returns the stream of the state of an AgentROA envelope.
pub fn envelope_stream(envelope: &Envelope) -> String {
    let named = format!("{} {}", envelope.envelope_id, envelope.session.session_id);
    format!("{ENVELOPES}{}", HEXLOWER.encode(&Sha256::digest(named.as_bytes())))
}

/// Returns whether this is the stream of the state of an AgentROA envelope.
pub fn is_envelope_stream(name: &str) -> bool {
    name.starts_with(ENVELOPES)
}

/// Returns the stream of the highest version of a registry.
pub fn registry_stream(registry_id: &Text) -> String {
    format!("{REGISTRIES}{}", HEXLOWER.encode(&Sha256::digest(registry_id.as_str().as_bytes())))
}

/// Returns the stream of the execution receipts of an instance.
pub fn receipts_stream(instance: &str) -> String {
    format!("{RECEIPTS}{instance}")
}

/// Returns the stream of a registered delegation chain, in which its statement is the only record.
pub fn chain_stream(digest: Sha256Digest) -> String {
    format!("{CHAINS}{digest}")
}

/// Returns the stream of a question for approvers.
pub fn question_stream(id: &str) -> String {
    format!("{QUESTIONS}{id}")
}

/// Returns `N` random bytes.
///
/// # Errors
/// [`WriterError::Unsigned`] if the system provides none.
pub fn random<const N: usize>() -> Result<[u8; N], WriterError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| WriterError::Unsigned(error.to_string()))?;
    Ok(bytes)
}

fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, JsonError> {
    jose::json::read_bytes(bytes)
}

fn write<T: Serialize>(state: &T) -> Result<Bytes, WriterError> {
    let bytes = serde_json::to_vec(state).map_err(|error| WriterError::Unrecordable(error.to_string()))?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_an_envelope_is_told_from_those_of_chains_and_sessions() {
        let chain = testkit::agentroa::root(|_| ());
        assert!(is_envelope_stream(&envelope_stream(chain.root().document())));
        for other in [chain_stream(chain.digest()), "session-0123456789abcdef".to_owned()] {
            assert!(!is_envelope_stream(&other), "{other}");
        }
    }
}
