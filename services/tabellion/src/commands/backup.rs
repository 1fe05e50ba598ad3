//! `tabellion backup`: writes the log to one file, checks the file without a database, and restores it.

pub mod checking;
pub mod filling;
pub mod writing;

use std::path::PathBuf;

use archive::ArchivePurpose;
use clap::Subcommand;

use super::serve::config;
use crate::cli::Context;
use crate::console::Failure;
use crate::settings::KeeperFlags;
use checking::Verify;

#[derive(Debug, Subcommand)]
#[command(
    before_help = "example:  tabellion backup create log.backup --config /etc/tabellion/tabellion.toml"
)]
pub enum Backup {
    /// Write the log into a file, up to its newest signed head; a running service is not disturbed
    #[command(
        before_help = "example:  tabellion backup create log.backup --config /etc/tabellion/tabellion.toml"
    )]
    Create {
        /// The file to write; one that is there is left as it is
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Check a file by itself: every digest, the root of every head, every signature
    #[command(before_help = "example:  tabellion backup verify log.backup --trust trust.toml")]
    Verify(Verify),
    /// Put the log of a file into an empty database; nothing is touched before all of it is checked
    #[command(
        before_help = "example:  tabellion backup restore log.backup --config /etc/tabellion/tabellion.toml"
    )]
    Restore {
        /// What `backup create` wrote
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
