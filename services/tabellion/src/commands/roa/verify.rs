//! `tabellion roa verify`: verifies a chain with a registry.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use roa::capability::Capability;
use roa::enforce::authorize;
use roa::text::UtcTime;
use roa::verify::{TimeBounds, VerifiedChain, verify_chain};
use serde::Serialize;

use super::{denied, read_chain_to_verify};
use crate::commands::agentroa::now;
use crate::commands::registry::RegistryArgs;
use crate::console::{Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Verify {
    /// The chain
    chain: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Also decide whether its holder may call this tool: mcp:SERVER.TOOL
    #[arg(long, value_name = "CAPABILITY")]
    call: Option<Capability>,
    /// The time to decide for [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let chain = read_chain_to_verify(&self.chain)?;
        let registry = self.registry.open()?;
        let at = self.at.map_or_else(now, UtcTime);
        let verified = verify_chain(&chain, &registry, TimeBounds::default(), at)
            .map_err(|denial| denied("chain-denied", "this chain is denied", &denial))?;
        if let Some(capability) = &self.call {
            authorize(&verified, capability, registry.is_in_manifest(capability), &registry)
                .map_err(|denial| denied("call-denied", "this call is denied", &denial))?;
        }
        context.console.result(&ChainVerification::of(&verified, self.call.as_ref()))
    }
}

/// The result of a verification: what the holder may do.
#[derive(Serialize)]
struct ChainVerification {
    verified: bool,
    envelope_id: String,
    chain_digest: String,
    holder: String,
    hops: usize,
    capabilities: Vec<String>,
    depth: u32,
    budgets: Vec<String>,
    price_class: Option<u32>,
    slo_class: Option<u32>,
    classification: Option<String>,
    registry_epoch: u64,
    registry_sequence: u64,
    call: Option<String>,
}

impl ChainVerification {
    fn of(chain: &VerifiedChain, call: Option<&Capability>) -> ChainVerification {
        let scope = chain.scope();
        let budgets = chain
            .ledgers()
            .iter()
            .map(|ledger| format!("{} {} (hop {})", ledger.budget.ceiling, ledger.budget.unit, ledger.hop));
        ChainVerification {
            verified: true,
            envelope_id: chain.envelope_id().to_string(),
            chain_digest: chain.digest().to_string(),
            holder: chain.holder().to_string(),
            hops: chain.scopes().len() - 1,
            capabilities: scope.capabilities.grants().map(ToString::to_string).collect(),
            depth: scope.depth,
            budgets: budgets.collect(),
            price_class: scope.price_class,
            slo_class: scope.slo_class,
            classification: scope.classification.as_ref().map(ToString::to_string),
            registry_epoch: chain.version().epoch,
            registry_sequence: chain.version().sequence,
            call: call.map(ToString::to_string),
        }
    }
}

impl Report for ChainVerification {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "ok    signatures, narrowing and registry {}.{}",
            self.registry_epoch, self.registry_sequence
        )?;
        if let Some(call) = &self.call {
            writeln!(out, "ok    {} is permitted to the holder", safe(call))?;
        }
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        for (name, value) in [
            ("envelope", Some(self.envelope_id.clone())),
            ("digest", Some(self.chain_digest.clone())),
            ("holder", Some(self.holder.clone())),
            ("hops", Some(self.hops.to_string())),
            ("scope", Some(self.capabilities.join(" "))),
            ("depth", Some(self.depth.to_string())),
            ("budgets", Some(self.budgets.join(", ")).filter(|budgets| !budgets.is_empty())),
            ("price", number(self.price_class)),
            ("slo", number(self.slo_class)),
            ("data", self.classification.clone()),
        ] {
            if let Some(value) = value {
                writeln!(out, "{name:<10} {}", safe(&value))?;
            }
        }
        Ok(())
    }
}
