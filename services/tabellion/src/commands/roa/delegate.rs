//! `tabellion roa delegate`: the holder of a chain delegates a narrower scope to another agent.

use std::path::PathBuf;

use clap::Args;
use roa::attestation::{
    Attestation, AttestationPolicy, DelegatedAgent, DelegatedScope, DelegatingAgent, RefType, UpstreamRef,
};
use roa::chain::Chain;
use roa::envelope::SchemaVersion;
use roa::limits::MAX_TASK;
use roa::signed::{Signatures, Signed};
use roa::text::{AgentId, Text};
use scitt::Signer;

use super::{ScopeArgs, random_id, read_chain, write_chain};
use crate::commands::agentroa::{now, usage};
use crate::console::Failure;
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Delegate {
    /// The chain that the delegating agent holds
    chain: PathBuf,
    /// The delegating agent's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Its name in the registry [default: the agent's id]
    #[arg(long, value_name = "NAME")]
    signer: Option<Text>,
    /// The agent that the scope is delegated to
    #[arg(long, value_name = "AGENT")]
    to: AgentId,
    #[command(flatten)]
    scope: ScopeArgs,
    /// How many further delegations may follow
    #[arg(long, value_name = "HOPS")]
    depth: Option<u32>,
    /// The task, in plain words
    #[arg(long, value_name = "TEXT")]
    task: Option<Text<MAX_TASK>>,
    /// Where to write the longer chain
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Delegate {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let chain = read_chain(&self.chain)?;
        let key = keyfile::read(&self.key)?;
        let attestation = self.attestation(&chain)?;
        let signer =
            self.signer.as_ref().map_or(attestation.delegating_agent.agent_id.as_str(), Text::as_str);
        let signers: [(&str, &dyn Signer); 1] = [(signer, &key)];
        let hop = Signed::sign(&attestation, &signers).map_err(keyfile::cannot_sign)?;
        let hops = chain.hops().iter().cloned().chain([hop]).collect();
        write_chain(context, &self.output, &Chain::new(chain.root().clone(), hops))
    }

    fn attestation(&self, chain: &Chain) -> Result<Attestation, Failure> {
        let root = chain.root().document();
        let (upstream_ref, holder) = match chain.hops().last() {
            None => (
                reference(RefType::RoaEnvelope, root.envelope_id.as_str(), chain.root().digest())?,
                &root.session.agent_id,
            ),
            Some(hop) => {
                let document = hop.document();
                let reference = reference(RefType::Ara, document.ara_id.as_str(), hop.digest())?;
                (reference, &document.delegated_agent.agent_id)
            }
        };
        let (budget_ceiling, budget_unit) = self.scope.budget.clone().unzip();
        Ok(Attestation {
            schema_version: SchemaVersion::V1,
            ara_id: random_id("ara:")?,
            issued_at: now(),
            upstream_ref,
            delegating_agent: DelegatingAgent {
                agent_id: holder.clone(),
                session_id: root.session.session_id.clone(),
            },
            delegated_agent: DelegatedAgent { agent_id: self.to.clone(), capability_declaration_ref: None },
            delegated_scope: DelegatedScope {
                capabilities: self.scope.capabilities()?,
                task_context: self.task.clone(),
                max_delegation_depth: self.depth,
                data_classification_ceiling: self.scope.classification.clone(),
                budget_ceiling,
                budget_unit,
                price_class: self.scope.price,
                slo_class: self.scope.slo,
            },
            policy: AttestationPolicy {
                policy_digest: root.policy.policy_digest,
                policy_version: root.policy.policy_version.clone(),
            },
            signatures: Signatures::default(),
        })
    }
}

fn reference(
    ref_type: RefType,
    id: &str,
    ref_digest: roa::text::Sha256Digest,
) -> Result<UpstreamRef, Failure> {
    Ok(UpstreamRef { ref_type, ref_id: id.parse().map_err(|error| usage(&error))?, ref_digest })
}
