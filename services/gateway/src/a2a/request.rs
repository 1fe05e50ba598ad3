//! A request to an agent: its method, its arguments, its AgentROA material, and the text that the agent receives.

use admission::arguments::CallArguments;
use admission::principal::{Caller, Era};
use bytes::Bytes;
use thiserror::Error;

use super::error_data::ErrorData;
use super::{CHAIN, PROOF};
use crate::authority::ChainMaterial;
use crate::calls::Calls;
use crate::decision_writer::{CallJob, HeldRequest};
use crate::frame::{Frame, FrameError, Kind, RawId, error_code};
use crate::front::AuthorizedRequest;
use crate::front::headers::{header_chain, header_proof};

/// The member of `params` that holds the members of extensions.
const METADATA: &str = "metadata";
/// The methods whose answer is an event stream.
const STREAMS: [&str; 4] = ["message/stream", "tasks/resubscribe", "SendStreamingMessage", "SubscribeToTask"];

/// A request to an agent.
pub struct AgentRequest {
    /// The JSON-RPC id.
    pub id: RawId,
    /// `true` if its answer is an event stream.
    pub streams: bool,
    /// The form of the data of its errors.
    pub error_data: ErrorData,
    /// The request for the agent, without the proof and the client's credentials.
    pub held: HeldRequest,
    method: String,
    arguments: String,
    chain: ChainMaterial,
    caller: Caller,
}

/// Reason why a message is not a request to an agent.
#[derive(Debug, Error)]
pub enum AgentRequestError {
    /// The message is not unambiguous JSON-RPC.
    #[error(transparent)]
    Message(#[from] FrameError),
    /// The message is not a request with an id.
    #[error("a message to an agent is a request with an id")]
    Kind,
    /// `params` is neither absent nor an object.
    #[error("params must be an object")]
    Params,
    /// `params.metadata` is neither absent nor an object.
    #[error("params.metadata must be an object")]
    Metadata,
}

impl AgentRequestError {
    /// Returns the JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Message(error) => error.code(),
            Self::Kind => error_code::INVALID_REQUEST,
            Self::Params | Self::Metadata => error_code::INVALID_PARAMS,
        }
    }
}

impl AgentRequest {
    /// Reads a message that arrived with this request at this route.
    ///
    /// # Errors
    /// [`AgentRequestError`] if the message is not a request that can be decided on.
    pub fn read(text: Bytes, request: &AuthorizedRequest, route: &str) -> Result<Self, AgentRequestError> {
        let frame = Frame::parse(text)?;
        let (id, method) = match (frame.kind(), frame.id(), frame.method()) {
            (Kind::Request, Some(id), Some(method)) => (id.clone(), method.to_owned()),
            _ => return Err(AgentRequestError::Kind),
        };
        let is_object = |text: Option<&str>| text.is_none_or(|text| text.starts_with('{'));
        if !is_object(frame.params_text()) {
            return Err(AgentRequestError::Params);
        }
        if !is_object(frame.param(METADATA)) {
            return Err(AgentRequestError::Metadata);
        }
        frame.refuse_lookalike_params(&[METADATA, "message"])?;
        let decided = Frame::parse(frame.without_inner(METADATA, &[CHAIN, PROOF]))?;
        Ok(Self {
            id,
            streams: STREAMS.contains(&method.as_str()),
            error_data: ErrorData::of_method(&method),
            held: HeldRequest::new(request.exchange(frame.without_inner(METADATA, &[PROOF]))),
            method,
            arguments: decided.params_text().unwrap_or("{}").to_owned(),
            chain: chain_material(&frame, request),
            caller: caller(request, route),
        })
    }

    /// Returns the length of the arguments, in bytes.
    pub fn arguments_bytes(&self) -> usize {
        self.arguments.len()
    }

    /// Returns `true` if the request asks for an agent card, which would lead around the gateway.
    pub fn is_for_card(&self) -> bool {
        ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"].contains(&self.method.as_str())
    }

    /// Returns the job that decides the request.
    pub fn job(&self, calls: &Calls) -> CallJob {
        let arguments = CallArguments::new(self.arguments.clone());
        CallJob {
            route: self.caller.route.clone(),
            chain: calls.presented(&self.chain, &self.method, &arguments, &self.caller),
            caller: self.caller.clone(),
            envelope: None,
            tool: self.method.clone(),
            header: None,
            arguments,
            can_ask: false,
            can_wait: false,
            has_roa_envelope: self.chain.is_present(),
            checked: None,
            asserted_client: None,
            state: None,
            invocation: None,
        }
    }
}

fn chain_material(frame: &Frame, request: &AuthorizedRequest) -> ChainMaterial {
    // A chain may be an array, or a string with its text: in A2A 1.0, numbers of `metadata` become floating point. A proof
    // that is not a string is malformed, and not absent.
    let text = |member| {
        let raw = || frame.inner_param(METADATA, member).map(str::to_owned);
        frame.inner_string(METADATA, member).or_else(raw)
    };
    ChainMaterial {
        meta: text(CHAIN),
        header: header_chain(&request.head.headers),
        proof: text(PROOF),
        header_proof: header_proof(&request.head.headers),
    }
}

fn caller(request: &AuthorizedRequest, route: &str) -> Caller {
    Caller {
        era: Era::Modern,
        token: request.authorized.token.clone(),
        certificate: request.authorized.certificate.clone(),
        mcp_session: None,
        is_session_issued: false,
        route: route.to_owned(),
    }
}
