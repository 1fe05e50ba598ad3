//! `tabellion registry publish`: registers a version of a registry on a log.

use std::path::PathBuf;

use clap::Args;
use registration::agentroa::AGENTROA_REGISTRY;

use crate::commands::register::{DocumentArgs, Register};
use crate::console::Failure;
use crate::console::files::{self, Access, Existing};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Publish {
    /// The registry; the registered version is kept as FILE.EPOCH.SEQUENCE
    file: PathBuf,
    #[command(flatten)]
    document: DocumentArgs,
}

impl Publish {
    /// Registers the version under a name of its own, so that the statements of earlier versions stay.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let signed = super::read(&self.file)?;
        let document = signed.document();
        let mut version = self.file.into_os_string();
        version.push(format!(".{}.{}", document.epoch, document.sequence));
        let version = PathBuf::from(version);
        files::write(&version, signed.canonical(), Access::Ordinary, Existing::Replace)?;
        let id = document.registry_id.to_string();
        Register::document(version, id, AGENTROA_REGISTRY, self.document).run(context)
    }
}
