//! One endpoint: what is behind it, and what is admitted there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use admission::glob::Pattern;
use admission::risk::{Degree, Weights};
use admission::rules::{
    Ceiling, CostRules, Decider, PolicyRule, Posture, PrincipalCeiling, SensitivityRules,
};
use admission::signature::Freshness;
use admission::tool::ToolRules;
use url::Url;

use super::oauth::OAuth;
use crate::isolation::{ChildLimits, User};

/// One endpoint.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its path, with a slash first and none last: `/mcp`.
    pub path: String,
    /// What is behind it.
    pub upstream: UpstreamConfig,
    /// What becomes of callers without VAP (V-33).
    pub without_vap: Posture,
    /// What they may call in the posture `restricted`: patterns of tool names.
    pub restricted: Vec<Pattern>,
    /// Whether messages of agents must be signed (V-34).
    pub signed: Requirement,
    /// Whether amendments must be, whatever the rest is (V-19).
    pub amendments_signed: bool,
    /// Who answers what a rule with `confirm` or an unsure judge asks.
    pub confirmations: Decider,
    /// Whether commitments wait for an approver.
    pub commitments_need_approval: bool,
    /// Whether amendments do that no approver has signed.
    pub amendments_need_approval: bool,
    /// Whether signed messages must say when and for whom (V-21).
    pub freshness: Freshness,
    /// What no session may exceed, whatever it declares (V-23).
    pub ceiling: Ceiling,
    /// What no principal may exceed over all its sessions (V-3).
    pub principal_ceiling: Option<PrincipalCeiling>,
    /// What calls cost where the server has not said (V-12, V-13).
    pub costs: CostRules,
    /// What tools do, whatever their callers say (V-30).
    pub sensitivities: SensitivityRules,
    /// Weights of the risk score.
    pub risk: Weights,
    /// From this score on the judge is asked.
    pub threshold: Degree,
    /// Methods besides `tools/call` that need an envelope (1.4): `resources/read`, `prompts/get`, …
    pub gated: Vec<String>,
    /// The operator's own rules (C4), in order.
    pub rules: Vec<PolicyRule>,
    /// Whether the judge is asked here, where there is one.
    pub judge: bool,
    /// Who may come in.
    pub oauth: Option<OAuth>,
    /// Whether `aiInvocation` goes on to the server (S-5).
    pub forward_invocation: bool,
    /// Whether `tools/list` shows only what the caller's commitment allows (V-36).
    pub filter_tools: bool,
    /// Which tools may be called, by what their server says of them, and whether arguments have to fit.
    pub tools: ToolRules,
    /// The longest arguments of a tool call, in bytes.
    pub arguments_bytes: usize,
    /// How long an answer of the server is waited for, from one byte to the next.
    pub timeout: Duration,
}

/// What is behind an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamConfig {
    /// One server.
    One(Server),
    /// Several, told apart by a prefix of names.
    Many {
        /// By prefix.
        servers: Vec<(String, Server)>,
        /// Between prefix and name.
        separator: String,
    },
}

impl UpstreamConfig {
    /// Every server.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        let (one, many) = match self {
            Self::One(server) => (Some(server), &[][..]),
            Self::Many { servers, .. } => (None, &servers[..]),
        };
        one.into_iter().chain(many.iter().map(|(_, server)| server))
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// Reached over Streamable HTTP.
    Http(HttpServer),
    /// Started by us, and spoken to over its standard streams.
    Command(CommandServer),
}

/// A server over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpServer {
    /// Its endpoint.
    pub url: Url,
    /// Our own credential there (R-27, mode A): a file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Headers that go with every request.
    pub headers: Vec<(String, String)>,
    /// Certificates to believe besides the system's (PEM).
    pub ca_file: Option<PathBuf>,
}

/// A server that we start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandServer {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its environment, besides what is passed.
    pub env: BTreeMap<String, String>,
    /// Variables of ours that it gets; PATH, HOME, LANG, TZ and the like unless said.
    pub pass_env: Vec<String>,
    /// Where it is started.
    pub folder: Option<PathBuf>,
    /// How many children there may be at once: one for each legacy session, and one more.
    pub children: usize,
    /// The user that it runs as, unless that of the gateway.
    pub user: Option<User>,
    /// Files and folders that it may change, besides temporary folders and the one where it is started.
    pub writable: Vec<PathBuf>,
    /// What each child may use.
    pub limits: ChildLimits,
}

/// Whether something is demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requirement {
    /// It counts when it is there.
    #[default]
    Optional,
    /// Nothing goes without.
    Required,
}

impl Requirement {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}
