//! Delegation chains of AgentROA: what a chain proves, whether it permits a call, and who makes the call.

use roa::aer::input_hash;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::proof::{Proof, ProvenCall, verify_proof};
use roa::registry::{OAuthClient, Presenter, Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::{AgentId, Sha256Digest, UtcTime};
use roa::verify::{DEFAULT_CLOCK_SKEW, DEFAULT_MAX_LIFETIME, TimeBounds, VerifiedChain, verify_chain};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::CoreError;
use crate::keys::public_key;

/// Verifies a chain under a registry, and decides about a call. Spent budgets, earlier presenters and the classes of tools are
/// not considered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyChain {
    /// The chain as JSON.
    chain: String,
    registry: RegistryText,
    call: Option<ChainCall>,
    /// Number of seconds by which a chain may be issued ahead of `at`.
    #[serde(default = "clock_skew")]
    clock_skew: i64,
    /// Longest validity of an envelope in seconds.
    #[serde(default = "max_lifetime")]
    max_lifetime: i64,
    /// Time of the decision (RFC 3339).
    at: UtcTime,
}

/// Verifies an agent's proof that it makes a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyProof {
    /// The proof: a compact JWS.
    proof: String,
    /// The chain that came with the call, as JSON.
    chain: String,
    registry: RegistryText,
    /// The requested tool, `mcp:SERVER.TOOL`.
    capability: String,
    /// The arguments of the call as JSON.
    arguments: Option<String>,
    /// The name of the gateway or server that is called.
    audience: String,
    #[serde(default = "clock_skew")]
    clock_skew: i64,
    /// Time of the decision (RFC 3339).
    at: UtcTime,
}

/// A registry, and the keys of its operators.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryText {
    /// The registry as JSON.
    document: String,
    operators: Vec<String>,
}

/// A call under a chain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainCall {
    /// The requested tool, `mcp:SERVER.TOOL`.
    capability: String,
    /// The caller, whose identity was proven; a call of nobody is denied.
    presenter: Option<PresenterText>,
    /// Whether the tool was in the manifest of its server when the envelope was first used; by default, whether it is.
    pinned: Option<bool>,
}

/// A caller with a proven identity.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum PresenterText {
    /// A client of an OAuth authorization server.
    OAuthClient(OAuthClient),
    /// An agent that made a proof.
    Agent { agent_id: AgentId },
    /// A client certificate, by the SHA-256 digest of its DER.
    Certificate { certificate: Sha256Digest },
}

const fn clock_skew() -> i64 {
    DEFAULT_CLOCK_SKEW
}

const fn max_lifetime() -> i64 {
    DEFAULT_MAX_LIFETIME
}

impl RegistryText {
    fn open(&self) -> Result<Registry, CoreError> {
        let signed = Signed::<RegistryDocument>::parse(self.document.as_bytes())
            .map_err(|error| CoreError::new("malformed-registry", error))?;
        let operators = self.operators.iter().map(|key| public_key(key)).collect::<Result<Vec<_>, _>>()?;
        Registry::open(&signed, &operators).map_err(|error| CoreError::new("registry-not-verified", error))
    }
}

impl From<PresenterText> for Presenter {
    fn from(presenter: PresenterText) -> Self {
        match presenter {
            PresenterText::OAuthClient(client) => Self::OAuthClient(client),
            PresenterText::Agent { agent_id } => Self::Proof(agent_id),
            PresenterText::Certificate { certificate } => Self::Certificate(certificate),
        }
    }
}

impl VerifyChain {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let registry = self.registry.open()?;
        let bounds =
            TimeBounds { clock_skew_seconds: self.clock_skew, max_lifetime_seconds: self.max_lifetime };
        let verified = Chain::parse(self.chain.as_bytes())
            .and_then(|chain| verify_chain(&chain, &registry, bounds, self.at));
        let verified = match verified {
            Ok(verified) => verified,
            Err(denial) => return Ok(denied(&denial)),
        };
        Ok(match self.call.map(|call| call.decide(&verified, &registry)).transpose()? {
            Some(Err(denial)) => denied(&denial),
            Some(Ok(())) | None => permitted(&verified),
        })
    }
}

impl ChainCall {
    fn decide(self, chain: &VerifiedChain, registry: &Registry) -> Result<Result<(), Denial>, CoreError> {
        let capability = capability(&self.capability)?;
        let presenter = self.presenter.map(Presenter::from);
        let call = RequestedCall {
            capability: &capability,
            is_pinned: self.pinned.unwrap_or_else(|| registry.is_in_manifest(&capability)),
            presenter: presenter.as_ref(),
            tool: &ToolClasses::default(),
        };
        Ok(enforce(chain, call, registry))
    }
}

impl VerifyProof {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let registry = self.registry.open()?;
        let capability = capability(&self.capability)?;
        let arguments = self.arguments.as_deref().map(jose::json::check_text).transpose();
        let arguments = arguments.map_err(|error| CoreError::new("malformed", error))?;
        let verified = Chain::parse(self.chain.as_bytes()).and_then(|chain| {
            let call = ProvenCall {
                chain_digest: chain.digest(),
                holder: chain.holder(),
                capability: &capability,
                input_hash: input_hash(arguments),
                audience: &self.audience,
            };
            verify_proof(&self.proof, call, &registry, self.clock_skew, self.at)
        });
        Ok(match verified {
            Ok(proof) => {
                let Proof { agent, jti, ends_at, .. } = proof;
                json!({ "outcome": "accept", "agent_id": agent, "jti": jti, "ends_at": ends_at })
            }
            Err(denial) => denied(&denial),
        })
    }
}

fn capability(text: &str) -> Result<Capability, CoreError> {
    text.parse().map_err(|_| CoreError::new("malformed", format!("{text:?} is not mcp:SERVER.TOOL")))
}

/// Returns what a verified chain proves.
fn permitted(chain: &VerifiedChain) -> Value {
    let capabilities: Vec<_> = chain.scope().capabilities.grants().map(ToString::to_string).collect();
    json!({
        "outcome": "permit",
        "envelope_id": chain.envelope_id().to_string(),
        "chain_digest": chain.digest().to_string(),
        "holder": chain.holder().to_string(),
        "hops": chain.depth(),
        "capabilities": capabilities,
    })
}

fn denied(denial: &Denial) -> Value {
    json!({
        "outcome": "deny",
        "reason": denial.reason.as_str(),
        "code": denial.code,
        "hop": denial.hop,
        "dimension": denial.dimension.map(|dimension| dimension.as_str()),
        "detail": denial.detail,
    })
}
