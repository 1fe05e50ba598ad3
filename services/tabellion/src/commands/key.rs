//! `tabellion key`: the log's own keys. Each key has one purpose, and stays published after it has signed.

mod rotation;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use scitt::{Algorithm, Signer};
use serde::Serialize;
use tlog::note::{LocalKey, NoteSigner};
use transparency::Config;

use super::entry::Admin;
use super::issuer::{self, Format, algorithm};
use super::serve::config;
use crate::console::files;
use crate::console::{Exit, Failure, Report};
use crate::context::Context;
use crate::keyfile::{self, KeyNames};
use crate::settings::KeeperFlags;

use rotation::{Revocation, Rotation};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion key rotate --config /etc/tabellion/tabellion.toml")]
pub enum Key {
    /// Create a key file
    #[command(before_help = "example:  tabellion key new -o receipt.pem")]
    New {
        /// The output file (PKCS#8 PEM, mode 0600)
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// ES256, ES384 or EdDSA
        #[arg(long, default_value = "ES256", value_parser = algorithm)]
        alg: Algorithm,
    },
    /// Show the configured keys' identifiers
    #[command(before_help = "example:  tabellion key show")]
    Show {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// List all current, former and announced keys of this log
    #[command(before_help = "example:  tabellion key list --config /etc/tabellion/tabellion.toml")]
    List {
        #[command(flatten)]
        admin: Admin,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Write a public key
    #[command(before_help = "example:  tabellion key export receipt --format cose -o receipt.cosekey")]
    Export {
        /// Which of the log's keys: receipt, checkpoint or operator
        #[arg(value_enum, hide_possible_values = true)]
        purpose: Purpose,
        /// The format: pem, cose, did-key, did-jwk or jwk
        #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
        format: Format,
        /// The output file
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Replace a key, even while the service runs (tabellion help keys)
    #[command(before_help = "example:  tabellion key rotate receipt --config /etc/tabellion/tabellion.toml")]
    Rotate {
        #[command(flatten)]
        rotate: Rotation,
        #[command(flatten)]
        admin: Admin,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Mark a replaced key as compromised from a tree size on (tabellion help keys)
    #[command(before_help = "example:  tabellion key revoke KID --since 1204")]
    Revoke {
        #[command(flatten)]
        revoke: Revocation,
        #[command(flatten)]
        admin: Admin,
        #[command(flatten)]
        flags: KeeperFlags,
    },
}

/// What a key of the log signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    /// Receipts.
    Receipt,
    /// C2SP checkpoints.
    Checkpoint,
    /// Registration policies.
    Operator,
}

impl Key {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::New { output, alg } => {
                let key = keyfile::generate(&output, alg)?;
                context.console.result(&KeyNames::of(key.public_key(), Some(&output)))
            }
            Self::Show { flags } => context.console.result(&Configured::of(&resolve(context, &flags)?)?),
            Self::List { admin, flags } => rotation::list(context, admin, &resolve(context, &flags)?),
            Self::Export { purpose, format, output, flags } => {
                let file = file_of(&resolve(context, &flags)?, purpose)?;
                issuer::export(&file.display().to_string(), format, &output)
            }
            Self::Rotate { rotate, admin, flags } => rotate.run(context, admin, &resolve(context, &flags)?),
            Self::Revoke { revoke, admin, flags } => revoke.run(context, admin, &resolve(context, &flags)?),
        }
    }
}

fn resolve(context: &Context, flags: &KeeperFlags) -> Result<Config, Failure> {
    config::resolve(&context.log_settings(flags.typed())?)
}

fn file_of(config: &Config, purpose: Purpose) -> Result<PathBuf, Failure> {
    let file = match purpose {
        Purpose::Receipt => Some(&config.keys.receipt),
        Purpose::Checkpoint => Some(&config.keys.checkpoint),
        Purpose::Operator => config.keys.operator.as_ref(),
    };
    file.cloned().ok_or_else(|| {
        Failure::new(Exit::NotFound, "file-not-found", "the operator key is not on this machine")
    })
}

#[derive(Serialize)]
struct Configured {
    receipt: KeyNames,
    checkpoint: KeyNames,
    operator: Option<KeyNames>,
}

impl Configured {
    fn of(config: &Config) -> Result<Self, Failure> {
        let names =
            |path: &PathBuf| Ok::<_, Failure>(KeyNames::of(keyfile::read(path)?.public_key(), Some(path)));
        Ok(Self {
            receipt: names(&config.keys.receipt)?,
            checkpoint: KeyNames { vkey: vkey(config)?, ..names(&config.keys.checkpoint)? },
            operator: config.keys.operator.as_ref().map(names).transpose()?,
        })
    }
}

/// Returns the log's verifier key (C2SP signed-note) for witnesses; `None` if its origin is not a valid key name.
fn vkey(config: &Config) -> Result<Option<String>, Failure> {
    let pem = files::read_text(&config.keys.checkpoint)?;
    let key = config.origin.parse().ok().and_then(|name| LocalKey::from_pkcs8_pem(name, &pem).ok());
    Ok(key.map(|key| key.key().to_string()))
}

impl Report for Configured {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let named = [
            ("receipts", Some(&self.receipt)),
            ("checkpoints", Some(&self.checkpoint)),
            ("policies", self.operator.as_ref()),
        ];
        named.into_iter().filter_map(|(purpose, key)| Some((purpose, key?))).try_for_each(|(purpose, key)| {
            writeln!(out, "{purpose}")?;
            key.human(out)
        })
    }
}
