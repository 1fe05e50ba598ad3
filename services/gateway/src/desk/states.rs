//! The states that streams have: those of sessions, and the gateway's own.
//!
//! A session is kept under its id. What belongs to none has names that begin as no session id may (`unbound:`, X-5), with a
//! point after it for what is the gateway's alone and has no records of calls.

use admission::approval::Question;
use admission::message::UNBOUND;
use admission::record::StreamKey;
use admission::session::{Account, Agreed, ReservationId, Running, Session};
use admission::tool::Pin;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use jose::json::JsonError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::error::DeskError;

/// The keys that were said last.
pub const KEYS_STREAM: &str = "unbound:.keys";
/// Where states of ours that came back outside any session are used up (V-26).
pub const STATES_STREAM: &str = "unbound:.states";
/// How many tools of a route are pinned, by the digest of its path.
const CATALOGUES: &str = "unbound:.tools:";
/// What is kept of a tool, by the digest of its route and name.
const TOOLS: &str = "unbound:.tool:";
/// What principals hold, by `admission`'s key for them.
const ACCOUNTS: &str = "unbound:.principal:";
/// Questions that wait for approvers, by their ids.
pub const QUESTIONS: &str = "unbound:.question:";

/// A stream's state.
#[derive(Clone, Debug)]
pub enum State {
    /// A session.
    Session(Box<SessionState>),
    /// What belongs to no session.
    Unbound(Unbound),
    /// What a principal holds.
    Account(Account),
    /// Keys that were said.
    Said(Said),
    /// How many tools of a route are pinned.
    Catalogue(Catalogue),
    /// What is kept of a tool.
    Tool(Box<Pin>),
    /// A question for approvers.
    Question(Box<KeptQuestion>),
}

/// A session, and what the desk remembers about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionState {
    /// The session.
    pub session: Session,
    /// Reservations for which somebody is being asked.
    pub asking: Vec<Asking>,
    /// Whether it is to be closed as soon as nothing is under way.
    pub ending: bool,
}

/// A reservation that holds the place of a call, while a judge or a person is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// The reservation.
    pub held: ReservationId,
    /// Which instance asks.
    pub instance: String,
    /// When nobody can still be asking, in Unix seconds.
    pub until: u64,
}

/// The stream of what belongs to no session, of one instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unbound {
    /// The secret behind the commitments in its records (4.10).
    pub key: StreamKey,
    /// Calls that were forwarded and are not settled.
    pub open: u64,
    /// Whether it is to be closed as soon as nothing is under way.
    pub ending: bool,
}

/// A question for approvers, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptQuestion {
    /// The question.
    pub question: Question,
    /// The answer, as it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Whether it is used, or nobody waits for it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// Keys that were said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// SHA-256 of the set, in hexadecimal.
    pub digest: String,
}

/// How many tools of a route are pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// So many.
    pub tools: usize,
}

/// A session's changing part, as the database keeps it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changing {
    running: Running,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asking: Vec<Asking>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ending: bool,
}

/// The same, to be written.
#[derive(Serialize)]
struct ChangingNow<'a> {
    running: &'a Running,
    #[serde(skip_serializing_if = "<[Asking]>::is_empty")]
    asking: &'a [Asking],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ending: bool,
}

impl State {
    /// Reads what the database kept. An empty state is none.
    ///
    /// # Errors
    /// If the database holds something else.
    pub fn read(name: &str, agreed: Option<&Bytes>, running: &Bytes) -> Result<Option<Self>, JsonError> {
        if running.is_empty() {
            return Ok(None);
        }
        let state = match name {
            KEYS_STREAM => Self::Said(read(running)?),
            name if name.starts_with(CATALOGUES) => Self::Catalogue(read(running)?),
            name if name.starts_with(TOOLS) => Self::Tool(Box::new(read(running)?)),
            name if name.starts_with(QUESTIONS) => Self::Question(read(running)?),
            name if name.starts_with(ACCOUNTS) => Self::Account(read(running)?),
            name if name.starts_with(UNBOUND) => Self::Unbound(read(running)?),
            _ => {
                let agreed: Agreed = read(agreed.unwrap_or(&Bytes::new()))?;
                let Changing { running, asking, ending } = read(running)?;
                Self::Session(Box::new(SessionState { session: Session { agreed, running }, asking, ending }))
            }
        };
        Ok(Some(state))
    }

    /// What changes with every call, as the database keeps it.
    ///
    /// # Errors
    /// If it has no JSON, which does not happen.
    pub fn running(&self) -> Result<Bytes, DeskError> {
        match self {
            Self::Session(state) => write(&ChangingNow {
                running: &state.session.running,
                asking: &state.asking,
                ending: state.ending,
            }),
            Self::Unbound(unbound) => write(unbound),
            Self::Account(account) => write(account),
            Self::Said(said) => write(said),
            Self::Catalogue(catalogue) => write(catalogue),
            Self::Tool(pin) => write(pin),
            Self::Question(kept) => write(kept),
        }
    }

    /// What changes seldom.
    ///
    /// # Errors
    /// As above.
    pub fn agreed(&self) -> Result<Bytes, DeskError> {
        match self {
            Self::Session(state) => write(&state.session.agreed),
            Self::Unbound(_)
            | Self::Account(_)
            | Self::Said(_)
            | Self::Catalogue(_)
            | Self::Tool(_)
            | Self::Question(_) => Ok(Bytes::new()),
        }
    }
}

impl Unbound {
    /// With a secret of its own.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate() -> Result<Self, DeskError> {
        Ok(Self { key: StreamKey::new(random()?), open: 0, ending: false })
    }
}

/// Where an account is kept.
pub fn account_stream(key: &str) -> String {
    format!("{ACCOUNTS}{key}")
}

/// Where it is kept how many tools of a route are pinned.
pub fn catalogue_stream(route: &str) -> String {
    format!("{CATALOGUES}{}", HEXLOWER.encode(&Sha256::digest(route.as_bytes())))
}

/// Where a tool is kept.
pub fn tool_stream(route: &str, tool: &str) -> String {
    let named = jose::jcs::canonical(&serde_json::json!([route, tool]));
    format!("{TOOLS}{}", HEXLOWER.encode(&Sha256::digest(&named)))
}

/// Where all tools are kept: what begins the names of their streams.
pub const fn tool_streams() -> &'static str {
    TOOLS
}

/// Whether commands change a stream beside the gateway, so that it is read anew for every decision.
pub fn is_changed_by_commands(name: &str) -> bool {
    name.starts_with(TOOLS)
}

/// Where a question is kept.
pub fn question_stream(id: &str) -> String {
    format!("{QUESTIONS}{id}")
}

/// Random bytes.
///
/// # Errors
/// If the system has none.
pub fn random<const N: usize>() -> Result<[u8; N], DeskError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| DeskError::Unsigned(error.to_string()))?;
    Ok(bytes)
}

fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, JsonError> {
    jose::json::read_bytes(bytes)
}

fn write<T: Serialize>(state: &T) -> Result<Bytes, DeskError> {
    let bytes = serde_json::to_vec(state).map_err(|error| DeskError::Unrecordable(error.to_string()))?;
    Ok(bytes.into())
}
