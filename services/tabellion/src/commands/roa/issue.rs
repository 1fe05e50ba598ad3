//! `tabellion roa issue`: an authorizer signs a root envelope.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;
use roa::chain::Chain;
use roa::envelope::{
    ApprovalState, AuthStrength, Authorization, AuthorizedScope, Channel, Envelope, EnvelopeEvidence,
    EnvelopePolicy, EnvelopeSession, SchemaVersion,
};
use roa::signed::{Signatures, Signed};
use roa::text::{AgentId, Sha256Digest, Text};
use scitt::Signer;

use super::{ScopeArgs, later, random_id, write_chain};
use crate::commands::agentroa::{now, policy_digest, usage};
use crate::console::{Failure, files};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Issue {
    /// The authorizer's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Its name in the registry
    #[arg(long, value_name = "NAME")]
    signer: Text,
    /// Who may act: aha:ORGANISATION/UNIT/AGENT
    #[arg(long)]
    agent: AgentId,
    /// The session
    #[arg(long, value_name = "ID")]
    session: Text,
    /// The policy document; its digest is taken
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Its name and version: incidents:4.2
    #[arg(long, value_name = "ID:VERSION")]
    policy_id: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// How many delegations may follow
    #[arg(long, default_value_t = 0, value_name = "HOPS")]
    depth: u32,
    /// Permit delegates of other organisations
    #[arg(long, hide = true)]
    cross_org: bool,
    /// How long it is valid
    #[arg(long, default_value = "1h", value_name = "TIME")]
    valid: SignedDuration,
    /// Where to write the chain
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Issue {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let key = keyfile::read(&self.key)?;
        let envelope = self.envelope()?;
        let signers: [(&str, &dyn Signer); 1] = [(self.signer.as_str(), &key)];
        let root = Signed::sign(&envelope, &signers).map_err(keyfile::cannot_sign)?;
        write_chain(context, &self.output, &Chain::new(root, Vec::new()))
    }

    fn envelope(&self) -> Result<Envelope, Failure> {
        let issued_at = now();
        let text = |text: &str| text.parse::<Text>().map_err(|error| usage(&error));
        let (policy_id, policy_version) = self.policy_id.rsplit_once(':').unwrap_or((&self.policy_id, "1"));
        let capabilities = self.scope.capabilities()?;
        let (budget_ceiling, budget_unit) = self.scope.budget.clone().unzip();
        Ok(Envelope {
            schema_version: SchemaVersion::V1,
            envelope_id: random_id("env:")?,
            issued_at,
            expires_at: later(issued_at, self.valid)?,
            session: EnvelopeSession {
                session_id: self.session.clone(),
                channel: Channel::McpClient,
                agent_id: self.agent.clone(),
                device_attestation_ref: None,
            },
            authorized_scope: AuthorizedScope {
                capabilities,
                max_delegation_depth: self.depth,
                cross_org_permitted: self.cross_org,
                data_classification_ceiling: self.scope.classification.clone(),
                budget_ceiling,
                budget_unit,
                price_class: self.scope.price,
                slo_class: self.scope.slo,
            },
            policy: EnvelopePolicy {
                policy_id: text(policy_id)?,
                policy_version: text(policy_version)?,
                policy_digest: policy_digest(&files::read(&self.policy)?),
                policy_uri: None,
            },
            authorization: Authorization {
                auth_strength: AuthStrength::SessionOnly,
                approval_state: ApprovalState::NotRequired,
                approval_artifact_ref: None,
            },
            evidence: EnvelopeEvidence {
                session_hash: text(&Sha256Digest::of(self.session.as_str().as_bytes()).to_string())?,
                model_provenance: Vec::new(),
            },
            signatures: Signatures::default(),
        })
    }
}
