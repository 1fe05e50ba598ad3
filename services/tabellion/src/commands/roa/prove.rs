//! `tabellion roa prove`: an agent signs one call, so that a gateway knows who presents a chain.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use roa::aer::input_hash;
use roa::capability::Capability;
use roa::proof::ProofClaims;
use roa::text::{Reference, Text};
use serde::Serialize;

use super::read_chain;
use crate::commands::agentroa::{now, usage};
use crate::console::{Failure, Report, files};
use crate::context::Context;
use crate::keyfile;

#[derive(Debug, Args)]
pub struct Prove {
    /// The chain that the call presents
    chain: PathBuf,
    /// The agent's Ed25519 key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Its name in the registry [default: the agent that holds the chain]
    #[arg(long, value_name = "NAME")]
    signer: Option<Text>,
    /// The tool: mcp:SERVER.TOOL
    #[arg(long, value_name = "CAPABILITY")]
    call: Capability,
    /// The arguments of the call, as JSON [default: none]
    #[arg(long, value_name = "FILE")]
    arguments: Option<PathBuf>,
    /// The name of the gateway
    #[arg(long, value_name = "NAME")]
    audience: Reference,
}

impl Prove {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let chain = read_chain(&self.chain)?;
        let arguments = self.arguments.as_deref().map(files::read).transpose()?;
        let checked = self.arguments.as_deref().zip(arguments.as_deref());
        let checked = checked.map(|(file, text)| files::check_json(file, text)).transpose()?;
        let claims = ProofClaims {
            chain_digest: chain.digest(),
            capability: self.call.to_string().parse().map_err(|error| usage(&error))?,
            input_hash: input_hash(checked),
            jti: uuid::Uuid::new_v4().to_string().parse().map_err(|error| usage(&error))?,
            iat: now().unix_seconds().cast_unsigned(),
            aud: self.audience,
        };
        let key = keyfile::read(&self.key)?;
        let signer = self.signer.as_ref().map_or(chain.holder().as_str(), Text::as_str);
        let proof = claims.sign(signer, &key).map_err(keyfile::cannot_sign)?;
        context.console.result(&ProofReport { proof })
    }
}

/// A proof: the value of `dev.tabellion/roa-proof` in the `_meta` of the call.
#[derive(Serialize)]
struct ProofReport {
    proof: String,
}

impl Report for ProofReport {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.proof)
    }
}
