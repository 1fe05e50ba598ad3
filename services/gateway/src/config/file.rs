//! The raw structure of the configuration file. Only its names are checked here; values are checked in `read`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// A text with its position in the file.
pub type Text = Spanned<String>;
/// A value with its position in the file, where its digits are read from the source text.
pub type Amount = Spanned<toml::Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub issuer: Text,
    pub listen: Text,
    pub admin_listen: Option<Text>,
    pub public_url: Option<Text>,
    pub state: PathBuf,
    pub evidence: Option<Text>,
    pub evidence_keep: Option<Text>,
    pub hosts: Option<Vec<String>>,
    #[serde(default)]
    pub origins: Vec<Text>,
    pub session_idle: Option<Text>,
    pub otlp: Option<Text>,
    #[serde(default)]
    pub hide: Vec<PathBuf>,
    pub log: Log,
    #[serde(default)]
    pub outbox: Outbox,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub keys: Keys,
    pub judge: Option<Spanned<Judge>>,
    #[serde(default, rename = "agent")]
    pub agents: Vec<Agent>,
    pub approvals: Option<Spanned<Approvals>>,
    #[serde(default, rename = "approver")]
    pub approvers: Vec<Approver>,
    #[serde(default, rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub url: Text,
    #[serde(default = "no")]
    pub receipt_required: Spanned<bool>,
    pub receipt_wait: Option<Text>,
    pub trust: Option<PathBuf>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

fn no() -> Spanned<bool> {
    Spanned::new(0..0, false)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    pub records: Option<Spanned<u64>>,
    pub bytes: Option<Amount>,
    pub age: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub body_bytes: Option<Amount>,
    pub requests_per_second: Option<Spanned<u32>>,
    pub burst: Option<Spanned<u32>>,
    pub connections: Option<Spanned<usize>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    pub evidence: Option<PathBuf>,
    pub verdict: Option<PathBuf>,
    pub state: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    pub url: Text,
    pub model: String,
    pub key_file: Option<PathBuf>,
    pub timeout: Option<Text>,
    pub sample_rate: Option<Spanned<f64>>,
    pub confidence: Option<Spanned<f64>>,
    #[serde(default)]
    pub commitments: bool,
    pub cache: Option<Text>,
    #[serde(default)]
    pub meter: crate::judge::Meter,
    pub cost: Option<Amount>,
    pub cap: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub id: Text,
    pub jwk: Option<Spanned<PathBuf>>,
    pub not_before: Option<Text>,
    pub not_after: Option<Text>,
    pub oauth: Option<AgentOAuth>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOAuth {
    pub issuer: Text,
    pub subject: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    pub listen: Text,
    pub url: Option<Text>,
    pub expires: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    pub name: Text,
    #[serde(default)]
    pub routes: Vec<Text>,
    #[serde(default)]
    pub tools: Vec<Text>,
    pub jwk: Spanned<PathBuf>,
    pub not_before: Option<Text>,
    pub not_after: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub path: Text,
    pub upstream: Option<Text>,
    pub upstream_token_file: Option<PathBuf>,
    pub upstream_headers: Option<BTreeMap<String, Text>>,
    pub upstream_ca_file: Option<PathBuf>,
    pub command: Option<Spanned<Vec<String>>>,
    pub env: Option<BTreeMap<String, String>>,
    pub pass_env: Option<Vec<String>>,
    pub folder: Option<PathBuf>,
    pub children: Option<Spanned<usize>>,
    pub user: Option<Text>,
    pub writable: Option<Vec<PathBuf>>,
    pub memory: Option<Amount>,
    pub processes: Option<Spanned<u64>>,
    pub open_files: Option<Spanned<u64>>,
    #[serde(default, rename = "server")]
    pub servers: Vec<Spanned<Server>>,
    pub separator: Option<Text>,
    pub without_vap: Option<Text>,
    #[serde(default)]
    pub restricted: Vec<Text>,
    pub signed: Option<Text>,
    pub amendments_signed: Option<bool>,
    pub confirmations: Option<Text>,
    pub commitments_need_approval: Option<bool>,
    pub amendments_need_approval: Option<bool>,
    pub freshness: Option<Text>,
    #[serde(default)]
    pub ceiling: Ceiling,
    pub principal_ceiling: Option<PrincipalCeiling>,
    #[serde(default)]
    pub cost: Costs,
    #[serde(default)]
    pub sensitivity: BTreeMap<String, Amount>,
    #[serde(default)]
    pub risk: Risk,
    #[serde(default)]
    pub gated: Vec<Text>,
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    pub judge: Option<bool>,
    pub oauth: Option<Spanned<OAuth>>,
    pub forward_invocation: Option<bool>,
    pub filter_tools: Option<bool>,
    pub tool_pins: Option<Text>,
    pub check_arguments: Option<bool>,
    pub arguments_bytes: Option<Amount>,
    pub timeout: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub prefix: Text,
    pub upstream: Option<Text>,
    pub upstream_token_file: Option<PathBuf>,
    pub upstream_headers: Option<BTreeMap<String, Text>>,
    pub upstream_ca_file: Option<PathBuf>,
    pub command: Option<Spanned<Vec<String>>>,
    pub env: Option<BTreeMap<String, String>>,
    pub pass_env: Option<Vec<String>>,
    pub folder: Option<PathBuf>,
    pub children: Option<Spanned<usize>>,
    pub user: Option<Text>,
    pub writable: Option<Vec<PathBuf>>,
    pub memory: Option<Amount>,
    pub processes: Option<Spanned<u64>>,
    pub open_files: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    pub max_calls: Option<Spanned<u64>>,
    pub latest: Option<Text>,
    pub lasts: Option<Text>,
    #[serde(default)]
    pub limits: BTreeMap<String, Amount>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalCeiling {
    pub max_calls: Option<Spanned<u64>>,
    pub window: Option<Text>,
    #[serde(default)]
    pub limits: BTreeMap<String, Amount>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    #[serde(default)]
    pub tools: BTreeMap<String, BTreeMap<String, Amount>>,
    #[serde(default)]
    pub default: BTreeMap<String, Amount>,
    #[serde(default)]
    pub cap: BTreeMap<String, Amount>,
    #[serde(default)]
    pub strict: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    #[serde(default)]
    pub weights: BTreeMap<String, Spanned<f64>>,
    pub threshold: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: Text,
    pub tool: Option<Text>,
    pub when: Option<Text>,
    pub then: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    pub mode: Text,
    pub resource: Option<Text>,
    pub metadata: Option<Text>,
    pub issuer: Text,
    pub jwks: Option<PathBuf>,
    pub jwks_url: Option<Text>,
    pub jwks_ca_file: Option<PathBuf>,
    pub algorithms: Option<Vec<Text>>,
    #[serde(default)]
    pub scopes: Vec<Text>,
    pub authorization_servers: Option<Vec<Text>>,
    pub token_type: Option<String>,
}
