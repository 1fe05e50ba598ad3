//! One endpoint of the gateway: its upstream, and its rules.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use admission::risk::{Degree, Weights};
use admission::rules::{
    AuthorityRules, Ceiling, CostRules, Decider, OperatorCommitment, PolicyRule, Posture, PrincipalCeiling,
    SensitivityRules,
};
use admission::signature::Freshness;
use admission::tool::ToolRules;
use url::Url;
use vap::glob::Pattern;

use super::oauth::OAuth;
use crate::isolation::{ChildLimits, User};

/// The configuration of one endpoint.
#[derive(Clone, Debug)]
pub struct Route {
    /// The path, with a leading slash and no trailing one: `/mcp`.
    pub path: String,
    /// The protocol that is spoken at the endpoint.
    pub protocol: RouteProtocol,
    /// The upstream.
    pub upstream: UpstreamConfig,
    /// The treatment of callers without VAP (V-33).
    pub without_vap: Posture,
    /// Patterns of tools that callers without VAP may call in the posture `restricted`.
    pub restricted: Vec<Pattern>,
    /// The commitment for callers without VAP in the posture `commitment`.
    pub commitment: Option<OperatorCommitment>,
    /// True if agents' messages must be signed (V-34).
    pub signed: Requirement,
    /// True if amendments must be signed, even if `signed` is optional (V-19).
    pub amendments_signed: bool,
    /// The party that answers the questions of rules with `confirm`, and of an unsure judge.
    pub confirmations: Decider,
    /// True if commitments wait for an approver.
    pub commitments_need_approval: bool,
    /// True if amendments without an approver's signature wait for an approver.
    pub amendments_need_approval: bool,
    /// True if signed messages must state their time and audience (V-21).
    pub freshness: Freshness,
    /// Upper bounds for every session, whatever it declares (V-23).
    pub ceiling: Ceiling,
    /// Upper bounds for a principal over all its sessions (V-3).
    pub principal_ceiling: Option<PrincipalCeiling>,
    /// Costs of calls, where the server does not report them (V-12, V-13).
    pub costs: CostRules,
    /// Sensitivities of tools, which callers cannot change (V-30).
    pub sensitivities: SensitivityRules,
    /// Weights of the risk score.
    pub risk: Weights,
    /// The risk score from which on the judge is asked.
    pub threshold: Degree,
    /// Further methods besides `tools/call` that need an envelope (1.4): `resources/read`, `prompts/get`, …
    pub gated: Vec<String>,
    /// The operator's policy rules (C4), in order.
    pub rules: Vec<PolicyRule>,
    /// True if the judge is used on this route, if there is one.
    pub judge: bool,
    /// OAuth protection of the route, if any.
    pub oauth: Option<OAuth>,
    /// True if `aiInvocation` is forwarded to the server (S-5).
    pub forward_invocation: bool,
    /// True if `tools/list` shows only the tools that the caller's commitment allows (V-36).
    pub filter_tools: bool,
    /// Rules for tools: pinning of their descriptions, and validation of arguments.
    pub tools: ToolRules,
    /// Maximum length of a tool call's arguments, in bytes.
    pub arguments_bytes: usize,
    /// The enforcement of AgentROA.
    pub authority: AuthorityRules,
    /// Timeout for the server, from one received byte to the next.
    pub timeout: Duration,
    /// Longest time from when a call is sent to the end of its answer.
    pub call_timeout: Duration,
    /// Longest time from when any other request is sent to the end of its answer.
    pub request_timeout: Duration,
}

/// The protocol of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteProtocol {
    /// MCP, before one or several servers.
    Mcp,
    /// A2A, before one agent.
    A2a {
        /// The address of the agent's own card.
        card: Url,
    },
}

/// The upstream of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamConfig {
    /// One server.
    One(Server),
    /// Several servers, distinguished by a prefix of their names.
    Many {
        /// The servers, with their prefixes.
        servers: Vec<(String, Server)>,
        /// The text between prefix and name.
        separator: String,
    },
}

impl UpstreamConfig {
    /// All servers of the upstream.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        let (one, many) = match self {
            Self::One(server) => (Some(server), &[][..]),
            Self::Many { servers, .. } => (None, &servers[..]),
        };
        one.into_iter().chain(many.iter().map(|(_, server)| server))
    }
}

/// The configuration of one MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A server reached over Streamable HTTP.
    Http(HttpServer),
    /// A child process that the gateway starts, with the stdio transport.
    Command(CommandServer),
}

/// The configuration of a server over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpServer {
    /// The URL of its MCP endpoint.
    pub url: Url,
    /// Path of a file with a bearer token, the gateway's own credential at this server (R-27, mode A).
    pub token_file: Option<PathBuf>,
    /// Headers that are added to every request.
    pub headers: Vec<(String, String)>,
    /// Path of further CA certificates (PEM), in addition to the system's.
    pub ca_file: Option<PathBuf>,
}

/// The configuration of a server that the gateway starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandServer {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Further environment variables, with their values.
    pub env: BTreeMap<String, String>,
    /// Names of the gateway's own environment variables that the child inherits; by default
    /// [`PASSED_ENV`](crate::limits::PASSED_ENV).
    pub pass_env: Vec<String>,
    /// The working directory.
    pub folder: Option<PathBuf>,
    /// Maximum number of children at a time: one for each legacy session, and one shared.
    pub children: usize,
    /// The user that runs the child; by default the gateway's.
    pub user: Option<User>,
    /// Files and folders that the child may write, in addition to temporary folders and its working directory.
    pub writable: Vec<PathBuf>,
    /// Resource limits of each child.
    pub limits: ChildLimits,
}

/// Requirement level of a property of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requirement {
    /// The property may be absent, but is checked if present.
    #[default]
    Optional,
    /// A message without it is refused.
    Required,
}

impl Requirement {
    /// The word for it in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}
