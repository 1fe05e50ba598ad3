//! A request as it is handed on.

use std::sync::Arc;

use admission::invocation::AiInvocation;
use admission::principal::{Caller, Era};

use super::{Client, Route};
use crate::frame::Frame;
use crate::upstream::Exchange;

/// Keys of `params._meta` under which VAP messages come.
pub const VAP_SLOTS: &[&str] = &["vap", "dev.tabellion/vap"];

/// Keys of `params._meta` under which AgentROA envelopes and their proofs come.
pub const ROA_KEYS: &[&str] = &["dev.tabellion/roa", "dev.tabellion/roa-proof"];
/// Keys of `params._meta` that are for the gateway, and never reach the upstream (V-35).
pub const VAP_KEYS: &[&str] = &[VAP_SLOTS[0], VAP_SLOTS[1], ROA_KEYS[0], ROA_KEYS[1]];

/// A message of a client that is somebody's matter.
pub struct Inbound {
    /// Where it came in.
    pub route: Arc<Route>,
    /// What the upstream would get: without VAP's material and the client's credentials.
    pub exchange: Exchange,
    /// What the client wrote, but for [`Inbound::aside`].
    pub frame: Frame,
    /// Whether it carries an AgentROA envelope, in `_meta` or as a header.
    pub has_roa_envelope: bool,
    /// What the caller says about why it calls (SEP-2817), and under which key.
    pub aside: Option<Aside>,
    /// Which revisions the client speaks.
    pub era: Era,
    /// Who it is.
    pub caller: Caller,
    /// Who waits for the answer.
    pub client: Client,
}

/// What a caller says about why it calls: for the audit alone.
pub struct Aside {
    /// The key under which it came, and under which its `turnId` is echoed (S-2).
    pub key: &'static str,
    /// What it says, closed.
    pub invocation: AiInvocation,
}
