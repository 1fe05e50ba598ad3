//! `tabellion roa inspect`: the scope that each hop of a chain declares, as a table.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use roa::chain::Chain;
use roa::scope::DeclaredScope;
use serde::Serialize;

use super::read_chain;
use crate::console::{Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Inspect {
    /// The chain
    chain: PathBuf,
}

impl Inspect {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        context.console.result(&ChainTable::of(&read_chain(&self.chain)?))
    }
}

/// A chain as a table. A value that is not declared is inherited.
#[derive(Serialize)]
pub struct ChainTable {
    envelope_id: String,
    session: String,
    policy: String,
    issued_at: String,
    expires_at: String,
    chain_digest: String,
    hops: Vec<HopRow>,
}

/// The declaration of a hop: 0 is the root envelope.
#[derive(Serialize)]
struct HopRow {
    hop: usize,
    agent: String,
    capabilities: Vec<String>,
    depth: Option<u32>,
    budget: Option<String>,
    price_class: Option<u32>,
    slo_class: Option<u32>,
    classification: Option<String>,
    signers: Vec<String>,
}

impl ChainTable {
    pub fn of(chain: &Chain) -> ChainTable {
        let root = chain.root().document();
        let first = HopRow::of(
            0,
            root.session.agent_id.to_string(),
            &root.declared_scope(),
            root.signatures.iter().map(|signature| signature.signer.to_string()).collect(),
        );
        let hops = chain.hops().iter().enumerate().map(|(before, hop)| {
            let hop = hop.document();
            let signers = hop.signatures.iter().map(|signature| signature.signer.to_string()).collect();
            HopRow::of(before + 1, hop.delegated_agent.agent_id.to_string(), &hop.declared_scope(), signers)
        });
        ChainTable {
            envelope_id: root.envelope_id.to_string(),
            session: root.session.session_id.to_string(),
            policy: format!("{} {}", root.policy.policy_id, root.policy.policy_version),
            issued_at: root.issued_at.into(),
            expires_at: root.expires_at.into(),
            chain_digest: chain.digest().to_string(),
            hops: std::iter::once(first).chain(hops).collect(),
        }
    }
}

impl HopRow {
    fn of(hop: usize, agent: String, scope: &DeclaredScope, signers: Vec<String>) -> HopRow {
        HopRow {
            hop,
            agent,
            capabilities: scope.capabilities.grants().map(ToString::to_string).collect(),
            depth: scope.max_delegation_depth,
            budget: scope.budget.as_ref().map(|budget| format!("{} {}", budget.ceiling, budget.unit)),
            price_class: scope.price_class,
            slo_class: scope.slo_class,
            classification: scope.classification.as_ref().map(ToString::to_string),
            signers,
        }
    }

    /// Returns the cells of the table; a dash stands for a value that is inherited.
    fn cells(&self) -> [String; 7] {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let number = |value: Option<u32>| or_dash(value.map(|value| value.to_string()));
        [
            self.hop.to_string(),
            self.agent.clone(),
            number(self.depth),
            or_dash(self.budget.clone()),
            number(self.price_class),
            number(self.slo_class),
            or_dash(self.classification.clone()),
        ]
    }
}

impl Report for ChainTable {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, value) in [
            ("envelope", &self.envelope_id),
            ("session", &self.session),
            ("policy", &self.policy),
            ("issued", &self.issued_at),
            ("expires", &self.expires_at),
            ("digest", &self.chain_digest),
        ] {
            writeln!(out, "{name:<10} {}", safe(value))?;
        }
        let head = ["hop", "agent", "depth", "budget", "price", "slo", "classification"].map(str::to_owned);
        let rows: Vec<[String; 7]> =
            std::iter::once(head).chain(self.hops.iter().map(HopRow::cells)).collect();
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: [usize; 7] = std::array::from_fn(width);
        writeln!(out)?;
        for (row, cells) in rows.iter().enumerate() {
            let line: Vec<String> =
                cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(out, "{}", safe(line.join("  ").trim_end()))?;
            if let Some(hop) = row.checked_sub(1).and_then(|row| self.hops.get(row)) {
                for capability in &hop.capabilities {
                    writeln!(out, "     {}", safe(capability))?;
                }
            }
        }
        Ok(())
    }
}
