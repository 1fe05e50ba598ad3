//! `tabellion vrf export`: a receipt as other protocols carry it (VRF, section 6.4).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use registration::vrf::{VrfRecord, VrfRedacted};
use scitt::SignedStatement;
use vrf_evidence::{ReferenceForm, VrfReference};

use super::broken;
use crate::commands::verify::input;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
pub struct Export {
    /// The statement, best with its log receipt
    file: PathBuf,
    /// a2a, mcp, acp, x402 or in-toto
    #[arg(long = "for", value_name = "PROTOCOL", value_enum, hide_possible_values = true)]
    protocol: Target,
    /// The receipt of a redacted statement
    #[arg(long, value_name = "FILE")]
    disclosed: Option<PathBuf>,
    /// The output file
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    service: ServiceArgs,
}

/// The protocols of `--for`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// A task artifact.
    A2a,
    /// The `_meta` member of a tool result.
    Mcp,
    /// A delivery memo.
    Acp,
    /// A payment memo.
    X402,
    /// A Statement, version 1.
    InToto,
}

impl Export {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let bytes = input::statement_bytes(&self.file)?;
        let statement = input::parsed(&self.file, bytes.clone())?;
        let record = self.record(&statement)?;
        let url =
            self.service.connect(context)?.client.base().join(&format!("entries/{}", statement.digest()));
        let url = url.map_err(|error| Failure::new(Exit::Usage, "usage", error.to_string()))?;
        let reference = VrfReference { record: &record, statement: &bytes, url: url.as_str() };
        let document = format!("{}\n", reference.document(self.protocol.into()));
        files::write(&self.output, document.as_bytes(), Access::Ordinary, Existing::Keep)
    }

    /// Verifies the rules and the signature, so that nothing is exported which a receiver would refuse.
    fn record(&self, statement: &SignedStatement) -> Result<VrfRecord, Failure> {
        let disclosed = self.disclosed.as_deref().map(files::read).transpose()?;
        let record = match (statement.header().hash_envelope(), disclosed) {
            (None, _) => VrfRecord::verify(statement, None),
            (Some(_), Some(receipt)) => {
                VrfRedacted::verify(statement, None).and_then(|redacted| redacted.disclose(&receipt))
            }
            (Some(_), None) => {
                let what = "the statement holds the hash of its receipt: show the receipt with --disclosed";
                return Err(Failure::new(Exit::Usage, "not-disclosed", what));
            }
        };
        record.map_err(|violation| broken(&violation))
    }
}

impl From<Target> for ReferenceForm {
    fn from(target: Target) -> Self {
        match target {
            Target::A2a => Self::A2a,
            Target::Mcp => Self::Mcp,
            Target::Acp => Self::Acp,
            Target::X402 => Self::X402,
            Target::InToto => Self::InToto,
        }
    }
}
