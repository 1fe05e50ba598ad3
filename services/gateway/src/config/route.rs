//! One endpoint: what is behind it, and what is admitted there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::amounts::Meters;
use super::oauth::OAuth;

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
    pub restricted: Vec<String>,
    /// Whether messages of agents must be signed (V-34).
    pub signed: Requirement,
    /// Whether signed messages must say when and for whom (V-21).
    pub freshness: Requirement,
    /// What no session may exceed, whatever it declares (V-23).
    pub ceiling: Ceiling,
    /// What no principal may exceed over all its sessions (V-3).
    pub principal_ceiling: Option<Ceiling>,
    /// What calls cost where the server has not said (V-12, V-13).
    pub costs: Costs,
    /// What tools do, whatever their callers say (V-30).
    pub sensitivity: BTreeMap<String, Vec<Sensitivity>>,
    /// Weights of the risk score.
    pub risk: Risk,
    /// Methods besides `tools/call` that need an envelope (1.4): `resources/read`, `prompts/get`, …
    pub gated: Vec<String>,
    /// The operator's own rules (C4), in order.
    pub rules: Vec<RuleConfig>,
    /// Whether the judge is asked here, where there is one.
    pub judge: bool,
    /// Who may come in.
    pub oauth: Option<OAuth>,
    /// Whether `aiInvocation` goes on to the server (S-5).
    pub forward_invocation: bool,
    /// Whether `tools/list` shows only what the caller's commitment allows (V-36).
    pub filter_tools: bool,
    /// How long an answer of the server is waited for, from one byte to the next.
    pub timeout: Duration,
}

/// What is behind an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamConfig {
    /// One server.
    One(Server),
    /// Several, told apart by a prefix of names.
    Many(Vec<(String, Server)>),
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
}

/// What becomes of callers without VAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Posture {
    /// Their calls are denied.
    #[default]
    Deny,
    /// They may call what is listed.
    Restricted,
    /// They are let through, and recorded.
    Advisory,
}

impl Posture {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Restricted => "restricted",
            Self::Advisory => "advisory",
        }
    }
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

/// An upper bound on what is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Calls.
    pub max_calls: Option<u64>,
    /// How far in the future a deadline may be; a session without one gets it.
    pub max_duration: Option<Duration>,
    /// Each meter.
    pub limits: Meters,
}

/// What calls cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// By tool, as the operator knows it.
    pub tools: BTreeMap<String, Meters>,
    /// Of any other tool.
    pub default: Meters,
    /// What one call may declare at most (V-13).
    pub cap: Meters,
    /// In a session with limits, a call of unknown cost is denied (V-12).
    pub strict: bool,
}

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sensitivity {
    /// It reads.
    Reads,
    /// It writes data.
    WritesData,
    /// It moves money.
    WritesMoney,
    /// It deletes.
    Deletes,
    /// It sends something out.
    SendsExternal,
    /// It grants access.
    GrantsAccess,
}

impl Sensitivity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Reads,
        Self::WritesData,
        Self::WritesMoney,
        Self::Deletes,
        Self::SendsExternal,
        Self::GrantsAccess,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::WritesData => "writes_data",
            Self::WritesMoney => "writes_money",
            Self::Deletes => "deletes",
            Self::SendsExternal => "sends_external",
            Self::GrantsAccess => "grants_access",
        }
    }
}

/// How the risk score is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Risk {
    /// Weights by signal, where they are not the usual ones.
    pub weights: BTreeMap<String, f64>,
    /// From this score on the judge is asked.
    pub threshold: Option<f64>,
}

/// One rule of the operator's (C4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleConfig {
    /// What it is called in verdicts: `policy:<name>`.
    pub name: String,
    /// Tools that it is about: a pattern.
    pub tool: String,
    /// When it holds.
    pub when: expression::Expression,
    /// What follows.
    pub then: Then,
}

/// What follows from a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// No later rule is asked.
    Allow,
    /// The call is denied.
    Deny,
    /// A person is asked first.
    Confirm,
}

impl Then {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Confirm => "confirm",
        }
    }
}
