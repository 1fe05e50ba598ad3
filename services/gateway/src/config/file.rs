//! The raw structure of the configuration file. Only its names are checked here; values are checked in `read`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serving::config_file::{Amount, SpannedText};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub issuer: SpannedText,
    pub listen: SpannedText,
    pub admin_listen: Option<SpannedText>,
    pub public_url: Option<SpannedText>,
    pub state: PathBuf,
    pub evidence: Option<SpannedText>,
    pub evidence_keep: Option<SpannedText>,
    pub hosts: Option<Vec<String>>,
    #[serde(default)]
    pub origins: Vec<SpannedText>,
    #[serde(default)]
    pub certificate_proxies: Vec<SpannedText>,
    pub session_idle: Option<SpannedText>,
    pub otlp: Option<SpannedText>,
    pub error_documentation: Option<SpannedText>,
    #[serde(default)]
    pub hide: Vec<PathBuf>,
    pub log: LogSection,
    #[serde(default)]
    pub outbox: OutboxSection,
    #[serde(default)]
    pub limits: LimitsSection,
    #[serde(default)]
    pub keys: KeysSection,
    pub judge: Option<Spanned<JudgeSection>>,
    #[serde(default, rename = "agent")]
    pub agents: Vec<AgentSection>,
    pub approvals: Option<Spanned<ApprovalsSection>>,
    #[serde(default, rename = "approver")]
    pub approvers: Vec<ApproverSection>,
    pub agentroa: Option<Spanned<AgentRoaSection>>,
    #[serde(default, rename = "route")]
    pub routes: Vec<Spanned<RouteSection>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSection {
    pub url: SpannedText,
    #[serde(default = "no")]
    pub receipt_required: Spanned<bool>,
    pub receipt_wait: Option<SpannedText>,
    pub trust: Option<PathBuf>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

fn no() -> Spanned<bool> {
    Spanned::new(0..0, false)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboxSection {
    pub records: Option<Spanned<u64>>,
    pub bytes: Option<Amount>,
    pub age: Option<SpannedText>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsSection {
    pub body_bytes: Option<Amount>,
    pub requests_per_second: Option<Spanned<u32>>,
    pub burst: Option<Spanned<u32>>,
    pub connections: Option<Spanned<usize>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysSection {
    pub evidence: Option<PathBuf>,
    pub verdict: Option<PathBuf>,
    pub state: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeSection {
    pub url: SpannedText,
    pub model: String,
    pub key_file: Option<PathBuf>,
    pub timeout: Option<SpannedText>,
    pub sample_rate: Option<Spanned<f64>>,
    pub confidence: Option<Spanned<f64>>,
    #[serde(default)]
    pub commitments: bool,
    pub cache: Option<SpannedText>,
    #[serde(default)]
    pub meter: crate::judge::Meter,
    pub cost: Option<Amount>,
    pub cap: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    pub id: SpannedText,
    pub jwk: Option<Spanned<PathBuf>>,
    pub not_before: Option<SpannedText>,
    pub not_after: Option<SpannedText>,
    pub oauth: Option<AgentOAuth>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOAuth {
    pub issuer: SpannedText,
    pub subject: SpannedText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRoaSection {
    pub registry: Option<PathBuf>,
    pub registry_url: Option<SpannedText>,
    #[serde(default)]
    pub registry_keys: Vec<Spanned<PathBuf>>,
    pub deltas: Option<PathBuf>,
    pub deltas_url: Option<SpannedText>,
    pub refresh: Option<SpannedText>,
    pub gateway_id: SpannedText,
    pub signer: SpannedText,
    pub receipts: Option<SpannedText>,
    pub register_chains: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolClassSection {
    pub price: Option<u32>,
    pub slo: Option<u32>,
    pub classification: Option<SpannedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalsSection {
    pub listen: SpannedText,
    pub url: Option<SpannedText>,
    pub expires: Option<SpannedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverSection {
    pub name: SpannedText,
    #[serde(default)]
    pub routes: Vec<SpannedText>,
    #[serde(default)]
    pub tools: Vec<SpannedText>,
    pub jwk: Spanned<PathBuf>,
    pub not_before: Option<SpannedText>,
    pub not_after: Option<SpannedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSection {
    pub path: SpannedText,
    pub protocol: Option<SpannedText>,
    pub agent_card: Option<SpannedText>,
    pub upstream: Option<SpannedText>,
    pub upstream_token_file: Option<PathBuf>,
    pub upstream_headers: Option<BTreeMap<String, SpannedText>>,
    pub upstream_ca_file: Option<PathBuf>,
    pub command: Option<Spanned<Vec<String>>>,
    pub env: Option<BTreeMap<String, String>>,
    pub pass_env: Option<Vec<String>>,
    pub folder: Option<PathBuf>,
    pub children: Option<Spanned<usize>>,
    pub user: Option<SpannedText>,
    pub writable: Option<Vec<PathBuf>>,
    pub memory: Option<Amount>,
    pub processes: Option<Spanned<u64>>,
    pub open_files: Option<Spanned<u64>>,
    #[serde(default, rename = "server")]
    pub servers: Vec<Spanned<ServerSection>>,
    pub separator: Option<SpannedText>,
    pub without_vap: Option<SpannedText>,
    #[serde(default)]
    pub restricted: Vec<SpannedText>,
    pub signed: Option<SpannedText>,
    pub amendments_signed: Option<bool>,
    pub confirmations: Option<SpannedText>,
    pub commitments_need_approval: Option<bool>,
    pub amendments_need_approval: Option<bool>,
    pub freshness: Option<SpannedText>,
    pub commitment: Option<Spanned<CommitmentSection>>,
    #[serde(default)]
    pub ceiling: CeilingSection,
    #[serde(default, rename = "agent_ceiling")]
    pub agent_ceilings: Vec<AgentCeilingSection>,
    pub principal_ceiling: Option<PrincipalCeilingSection>,
    #[serde(default)]
    pub cost: CostsSection,
    #[serde(default)]
    pub sensitivity: BTreeMap<String, Amount>,
    #[serde(default)]
    pub risk: RiskSection,
    #[serde(default)]
    pub gated: Vec<SpannedText>,
    #[serde(default, rename = "rule")]
    pub rules: Vec<RuleSection>,
    pub judge: Option<bool>,
    pub oauth: Option<Spanned<OAuthSection>>,
    pub forward_invocation: Option<bool>,
    pub filter_tools: Option<bool>,
    pub tool_pins: Option<SpannedText>,
    pub check_arguments: Option<bool>,
    pub arguments_bytes: Option<Amount>,
    pub timeout: Option<SpannedText>,
    pub call_timeout: Option<SpannedText>,
    pub request_timeout: Option<SpannedText>,
    pub roa: Option<SpannedText>,
    pub server_id: Option<SpannedText>,
    pub degraded: Option<SpannedText>,
    #[serde(default)]
    pub tool_class: BTreeMap<String, ToolClassSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSection {
    pub prefix: SpannedText,
    pub upstream: Option<SpannedText>,
    pub upstream_token_file: Option<PathBuf>,
    pub upstream_headers: Option<BTreeMap<String, SpannedText>>,
    pub upstream_ca_file: Option<PathBuf>,
    pub command: Option<Spanned<Vec<String>>>,
    pub env: Option<BTreeMap<String, String>>,
    pub pass_env: Option<Vec<String>>,
    pub folder: Option<PathBuf>,
    pub children: Option<Spanned<usize>>,
    pub user: Option<SpannedText>,
    pub writable: Option<Vec<PathBuf>>,
    pub memory: Option<Amount>,
    pub processes: Option<Spanned<u64>>,
    pub open_files: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitmentSection {
    pub goal: SpannedText,
    pub agent: Option<SpannedText>,
    #[serde(default)]
    pub tools_allow: Vec<SpannedText>,
    #[serde(default)]
    pub tools_deny: Vec<SpannedText>,
    pub max_calls: Option<Spanned<u64>>,
    pub lasts: Option<SpannedText>,
    #[serde(default)]
    pub limits: BTreeMap<String, Amount>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingSection {
    pub max_calls: Option<Spanned<u64>>,
    pub latest: Option<SpannedText>,
    pub lasts: Option<SpannedText>,
    #[serde(default)]
    pub limits: BTreeMap<String, Amount>,
    #[serde(default)]
    pub tools_allow: Vec<SpannedText>,
    #[serde(default)]
    pub tools_deny: Vec<SpannedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCeilingSection {
    pub agent: SpannedText,
    #[serde(default)]
    pub tools_allow: Vec<SpannedText>,
    #[serde(default)]
    pub tools_deny: Vec<SpannedText>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalCeilingSection {
    pub max_calls: Option<Spanned<u64>>,
    pub window: Option<SpannedText>,
    #[serde(default)]
    pub limits: BTreeMap<String, Amount>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostsSection {
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
pub struct RiskSection {
    #[serde(default)]
    pub weights: BTreeMap<String, Spanned<f64>>,
    pub threshold: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSection {
    pub name: SpannedText,
    pub tool: Option<SpannedText>,
    pub when: Option<SpannedText>,
    pub then: SpannedText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuthSection {
    pub mode: SpannedText,
    pub resource: Option<SpannedText>,
    pub metadata: Option<SpannedText>,
    pub issuer: SpannedText,
    pub jwks: Option<PathBuf>,
    pub jwks_url: Option<SpannedText>,
    pub jwks_ca_file: Option<PathBuf>,
    pub algorithms: Option<Vec<SpannedText>>,
    #[serde(default)]
    pub scopes: Vec<SpannedText>,
    pub authorization_servers: Option<Vec<SpannedText>>,
    pub token_type: Option<String>,
}
