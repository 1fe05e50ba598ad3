//! A client's message with its context, as it is passed to the handlers.

use std::sync::Arc;

use admission::invocation::AiInvocation;
use admission::principal::{Caller, Era};
use http::HeaderMap;

use super::Endpoint;
use crate::authority::ChainMaterial;
use crate::frame::Frame;
use crate::front::headers::{header_chain, header_proof};
use crate::relay::Client;
use crate::upstream::Exchange;

/// Keys of `params._meta` that carry VAP messages.
pub const VAP_SLOTS: &[&str] = &["vap", "dev.tabellion/vap"];

/// Keys of `params._meta` that carry AgentROA envelopes and their proofs.
pub const ROA_KEYS: &[&str] = &["dev.tabellion/roa", "dev.tabellion/roa-proof"];
/// Keys of `params._meta` that are for the gateway, and are never forwarded (V-35).
pub const VAP_KEYS: &[&str] = &[VAP_SLOTS[0], VAP_SLOTS[1], ROA_KEYS[0], ROA_KEYS[1]];

/// A client's message with its endpoint, caller and client.
pub struct Inbound {
    /// The endpoint at which the message arrived.
    pub endpoint: Arc<Endpoint>,
    /// The request for the upstream: without VAP material and the client's credentials.
    pub exchange: Exchange,
    /// The message as the client wrote it, without [`Inbound::invocation`].
    pub frame: Frame,
    /// The AgentROA material of the message, in `_meta` or as a header.
    pub chain: ChainMaterial,
    /// The caller's statement about the reasons of its call (SEP-2817), with its key.
    pub invocation: Option<InvocationMember>,
    /// The era of the client.
    pub era: Era,
    /// The caller.
    pub caller: Caller,
    /// The client that waits for the answer.
    pub client: Client,
}

/// Reads the AgentROA material of a request.
pub fn chain_material(frame: &Frame, headers: &HeaderMap) -> ChainMaterial {
    ChainMaterial {
        meta: frame.meta(ROA_KEYS[0]).map(str::to_owned),
        header: header_chain(headers),
        proof: frame
            .meta(ROA_KEYS[1])
            .map(|text| frame.meta_string(ROA_KEYS[1]).unwrap_or_else(|| text.to_owned())),
        header_proof: header_proof(headers),
    }
}

/// A caller's statement about the reasons of its call, for the audit record only, with the keys that carried it.
pub struct InvocationMember {
    /// The keys of `_meta` that carried it, under which its `turnId` is echoed (S-2).
    pub keys: Vec<&'static str>,
    /// The statement, not readable by the code that decides.
    pub invocation: AiInvocation,
}
