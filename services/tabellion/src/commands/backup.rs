//! `tabellion backup`: writes the log to one file, checks the file without a database, and restores it.

pub mod checking;
pub mod filling;
pub mod writing;

use std::path::PathBuf;

use archive::ArchivePurpose;
use clap::Subcommand;

use super::serve::config;
use crate::console::Failure;
use crate::context::Context;
use crate::settings::KeeperFlags;
use checking::Verify;

#[derive(Debug, Subcommand)]
#[command(
    before_help = "example:  tabellion backup create log.backup --config /etc/tabellion/tabellion.toml"
)]
pub enum Backup {
    /// Write the log up to its newest signed head to a file, also while the service runs
    #[command(
        before_help = "example:  tabellion backup create log.backup --config /etc/tabellion/tabellion.toml"
    )]
    Create {
        /// The file to write; an existing file is not overwritten
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Check every digest, root and signature of a file
    #[command(before_help = "example:  tabellion backup verify log.backup --trust trust.toml")]
    Verify(Verify),
    /// Write the log from a file to an empty database, after checking the whole file
    #[command(
        before_help = "example:  tabellion backup restore log.backup --config /etc/tabellion/tabellion.toml"
    )]
    Restore {
        /// A file from `backup create`
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
}

impl Backup {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Create { file, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                writing::write(context, &config, &file, ArchivePurpose::Backup)
            }
            Self::Verify(verify) => verify.run(context),
            Self::Restore { file, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                filling::fill(context, &config, &file, ArchivePurpose::Backup)
            }
        }
    }
}
