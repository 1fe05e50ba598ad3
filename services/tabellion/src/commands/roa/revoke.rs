//! `tabellion roa revoke`: revokes the root envelope of a chain.

use std::path::PathBuf;

use clap::Args;
use roa::registry::RevokedSubject;

use super::read_chain;
use crate::commands::registry::{DeltaFile, RegistryEdit};
use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Revoke {
    /// The chain
    chain: PathBuf,
    /// The registry; its next version replaces it
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// The registry's operator's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    deltas: DeltaFile,
}

impl Revoke {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let envelope = read_chain(&self.chain)?.root().document().envelope_id.clone();
        let mut edit = RegistryEdit::open(&self.registry, &self.key)?;
        edit.revoke(RevokedSubject::Envelope(envelope));
        edit.write_revocation(context, &self.deltas)
    }
}
