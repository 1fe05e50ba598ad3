//! The states that streams have: those of sessions, and the gateway's own.
//!
//! A session is kept under its id. What belongs to none has names that begin as no session id may (`unbound:`, X-5), with a
//! point after it for what is the gateway's alone.

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::error::DeskError;

/// The keys that were said last.
pub const KEYS_STREAM: &str = "unbound:.keys";
/// What principals have, by the digest of who they are.
const PRINCIPALS: &str = "unbound:.principal:";

/// A stream's state.
#[derive(Clone, Debug)]
pub enum State {
    /// Keys that were said.
    Said(Said),
}

/// Keys that were said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// SHA-256 of the set, in hexadecimal.
    pub digest: String,
}

/// A state as the database keeps it.
#[derive(Debug, Default)]
pub struct Written {
    /// What changes seldom.
    pub agreed: Bytes,
    /// What changes with every call.
    pub running: Bytes,
}

impl State {
    /// Reads what the database kept. Nothing is left of a session that has ended.
    pub fn read(
        name: &str,
        agreed: Option<&Bytes>,
        running: &Bytes,
    ) -> Result<Option<Self>, serde_json::Error> {
        if running.is_empty() {
            return Ok(None);
        }
        if name == KEYS_STREAM {
            return read(running).map(Self::Said).map(Some);
        }
        let _ = (agreed, PRINCIPALS);
        Ok(None)
    }

    /// As the database keeps it.
    pub fn write(&self) -> Result<Written, DeskError> {
        let (agreed, running) = match self {
            Self::Said(said) => (Bytes::new(), write(said)?),
        };
        Ok(Written { agreed, running })
    }
}

fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}

fn write<T: Serialize>(state: &T) -> Result<Bytes, DeskError> {
    let bytes = serde_json::to_vec(state).map_err(|error| DeskError::Unrecordable(error.to_string()))?;
    Ok(bytes.into())
}
