//! `tabellion key`: the log's own keys. One key, one purpose; a key that signed is published for ever.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use data_encoding::BASE64URL_NOPAD;
use scitt::{Algorithm, CoseKey, Signer};
use serde::Serialize;
use store::{LogKey, LogStore};
use tlog::note::{LocalKey, NoteSigner};
use transparency::{Config, storage};

use super::issuer::{self, Format, algorithm};
use super::serve::config;
use super::serve::failures::database;
use super::verify::now;
use crate::cli::Context;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::keyfile::{self, KeyNames};
use crate::settings::KeeperFlags;
use crate::show;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion key rotate --config /etc/tabellion/tabellion.toml")]
pub enum Key {
    /// Make a key file
    #[command(before_help = "example:  tabellion key new -o receipt.pem")]
    New {
        /// Where to write it (PKCS#8 PEM, mode 0600)
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// ES256, ES384 or EdDSA
        #[arg(long, default_value = "ES256", value_parser = algorithm)]
        alg: Algorithm,
    },
    /// What the configured keys are called
    #[command(before_help = "example:  tabellion key show")]
    Show {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Every key that ever signed for this log, from its database
    #[command(before_help = "example:  tabellion key list --config /etc/tabellion/tabellion.toml")]
    List {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Write a public key
    #[command(before_help = "example:  tabellion key export receipt --format cose -o receipt.cosekey")]
    Export {
        /// Which of the log's keys: receipt, checkpoint or operator
        #[arg(value_enum, hide_possible_values = true)]
        purpose: Purpose,
        /// How to write it: pem, cose, did-key, did-jwk or jwk
        #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
        format: Format,
        /// Where to
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Replace the receipt key, with the service stopped: the old one stays published
    #[command(before_help = "example:  tabellion key rotate --config /etc/tabellion/tabellion.toml")]
    Rotate {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Mark a key as retired, with the service stopped
    #[command(before_help = "example:  tabellion key retire mxA4KiOkT1mJm0sZ9qzOd7w3yQvYb8l5n2e6uXcGhRs")]
    Retire {
        /// The key's kid
        #[arg(allow_hyphen_values = true)]
        kid: String,
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
            Self::List { flags } => {
                on_database(&resolve(context, &flags)?, async |store, _| list(context, store).await)
            }
            Self::Export { purpose, format, output, flags } => {
                let file = file_of(&resolve(context, &flags)?, purpose)?;
                issuer::export(&file.display().to_string(), format, &output)
            }
            Self::Rotate { flags } => on_database(&resolve(context, &flags)?, async |store, config| {
                rotate(context, store, config).await
            }),
            Self::Retire { kid, flags } => on_database(&resolve(context, &flags)?, async |store, config| {
                retire(context, store, config, &kid).await
            }),
        }
    }
}

fn resolve(context: &Context, flags: &KeeperFlags) -> Result<Config, Failure> {
    config::resolve(&context.settings(flags.typed())?)
}

/// Runs something on the log's database, which no service may be using.
fn on_database(
    config: &Config,
    work: impl AsyncFnOnce(&dyn LogStore, &Config) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = storage::open_existing(&config.database, &config.origin).await.map_err(database)?;
        work(&*store, config).await
    })
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

async fn list(context: &Context, store: &dyn LogStore) -> Result<(), Failure> {
    let keys = store.keys().await.map_err(database)?;
    context.console.result(&Recorded { keys: keys.iter().map(RecordedKey::of).collect() })
}

/// The new key is on record before its file takes the old one's place, so a crash between the two leaves a log that
/// still starts with the key it has.
async fn rotate(context: &Context, store: &dyn LogStore, config: &Config) -> Result<(), Failure> {
    let path = &config.keys.receipt;
    let old = keyfile::read(path)?;
    let old_kid = old.public_key().thumbprint();
    let new = scitt::SigningKey::generate(old.algorithm())
        .map_err(|error| Failure::new(Exit::Failure, "key", error.to_string()))?;
    let head = store.head().await.map_err(database)?;
    store.keep_key(&record(&new, head.size())).await.map_err(database)?;
    let aside = aside(path, &old_kid);
    keyfile::write(&aside, &old)?;
    let pem = new.to_pkcs8_pem().map_err(|error| Failure::new(Exit::Failure, "key", error.to_string()))?;
    files::write(path, pem.as_bytes(), Access::Secret, Existing::Replace)?;
    store.retire_key(&old_kid, now()).await.map_err(database)?;
    context.console.note(format!("kept       {} (delete it once nothing signs with it)", aside.display()));
    context.console.result(&KeyNames::of(new.public_key(), Some(path)))
}

async fn retire(context: &Context, store: &dyn LogStore, config: &Config, kid: &str) -> Result<(), Failure> {
    let bytes = BASE64URL_NOPAD
        .decode(kid.as_bytes())
        .map_err(|_| Failure::new(Exit::Usage, "usage", "a kid is unpadded base64url"))?;
    if keyfile::read(&config.keys.receipt)?.public_key().thumbprint().as_slice() == bytes {
        return Err(Failure::new(Exit::Refused, "key-in-use", "this key signs the log's receipts")
            .why("a log without a receipt key cannot start")
            .hint("tabellion key rotate"));
    }
    store.retire_key(&bytes, now()).await.map_err(database)?;
    list(context, store).await
}

fn record(key: &scitt::SigningKey, from_size: merkle::TreeSize) -> LogKey {
    let kid = key.public_key().thumbprint().to_vec();
    let public =
        CoseKey { key: key.public_key().clone(), kid: Some(kid.clone()), algorithm: Some(key.algorithm()) };
    LogKey { kid, public: public.encode().into(), from_size, retired_at: None }
}

/// `receipt.pem` becomes `receipt.<first of its kid>.pem`.
fn aside(path: &Path, kid: &[u8]) -> PathBuf {
    let short: String = BASE64URL_NOPAD.encode(kid).chars().take(8).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{stem}.{short}.pem"))
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

/// What witnesses know the log by; none if its origin cannot be a key's name.
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

#[derive(Serialize)]
struct Recorded {
    keys: Vec<RecordedKey>,
}

#[derive(Serialize)]
struct RecordedKey {
    kid: String,
    signs: &'static str,
    from_size: u64,
    retired_at: Option<String>,
}

impl RecordedKey {
    fn of(key: &LogKey) -> Self {
        let receipts = CoseKey::parse(&key.public).is_ok();
        Self {
            kid: BASE64URL_NOPAD.encode(&key.kid),
            signs: if receipts { "receipts" } else { "checkpoints" },
            from_size: key.from_size.get(),
            retired_at: key.retired_at.map(|at| show::time(i64::try_from(at).unwrap_or(i64::MAX))),
        }
    }
}

impl Report for Recorded {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.keys.iter().try_for_each(|key| {
            let retired = key.retired_at.as_ref().map(|at| format!(", retired {at}")).unwrap_or_default();
            writeln!(out, "{:11}  {}  from size {}{retired}", key.signs, safe(&key.kid), key.from_size)
        })
    }
}
