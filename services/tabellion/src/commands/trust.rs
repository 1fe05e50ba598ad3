//! `tabellion trust`: edits and lists the trust file, which `verify` uses.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use data_encoding::BASE64URL_NOPAD;
use scitt::CoseKey;
use scitt::key::KeyEnd;
use serde::Serialize;
use tlog::key::VerifierKey;
use verifier::{LeafRule, RetiredCheckpointKey, TrustedLog};

use crate::console::{Cell, Column, Console, Exit, Failure, Report, Table, safe};
use crate::context::Context;
use crate::keyfile;
use crate::service::{Service, ServiceArgs};
use crate::trust_file::TrustFile;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion trust add issuer --iss https://ci.example --key issuer.pub.pem")]
pub enum Trust {
    /// Trust a log or an issuer
    #[command(
        before_help = "example:  tabellion trust add issuer --iss https://ci.example --key issuer.pub.pem"
    )]
    #[command(subcommand)]
    Add(Box<Add>),
    /// List the trusted logs and issuers
    #[command(before_help = "example:  tabellion trust list")]
    List(TrustFileArgs),
    /// Show one log or issuer
    #[command(before_help = "example:  tabellion trust show https://ci.example")]
    Show {
        /// iss or origin
        name: String,
        #[command(flatten)]
        which: TrustFileArgs,
    },
    /// Remove a log or an issuer from the trust file
    #[command(before_help = "example:  tabellion trust remove https://ci.example")]
    Remove {
        /// iss or origin
        name: String,
        #[command(flatten)]
        which: TrustFileArgs,
    },
}

/// Which trust file.
#[derive(Clone, Debug, Args)]
pub struct TrustFileArgs {
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Add {
    /// Trust a log's key, from a file or from the service by its kid
    #[command(
        before_help = "example:  tabellion trust add log --url https://log.example.org --kid KID",
        mut_arg("timeout", |timeout| timeout.hide(true)),
        mut_arg("cacert", |cacert| cacert.hide(true))
    )]
    Log {
        /// The log's public key
        #[arg(long, value_name = "KEY", conflicts_with = "kid")]
        key: Option<String>,
        /// The kid of the key to take from the service
        // One in 64 begins with a hyphen: base64url has it in its alphabet.
        #[arg(long, required_unless_present = "key", allow_hyphen_values = true)]
        kid: Option<String>,
        /// `iss` of its receipts [default: the service's]
        #[arg(long)]
        iss: Option<String>,
        /// `sub` of its receipts [default: the service's]
        #[arg(long)]
        origin: Option<String>,
        /// A verifier key of its checkpoints (vkey)
        #[arg(long, value_name = "VKEY")]
        checkpoint_key: Vec<VerifierKey>,
        /// A verifier key that it replaced, and the first tree size that this key does not sign
        #[arg(long, value_name = "VKEY=SIZE", value_parser = retired_checkpoint_key, hide = true)]
        retired_checkpoint_key: Vec<RetiredCheckpointKey>,
        /// Leaves hash whole statements (leaf rule `statement`), not their SHA-256
        #[arg(long)]
        leaf_is_statement: bool,
        #[command(flatten)]
        service: ServiceArgs,
        #[command(flatten)]
        which: TrustFileArgs,
    },
    /// Trust a key of an issuer
    #[command(
        before_help = "example:  tabellion trust add issuer --iss https://ci.example --key issuer.pub.pem"
    )]
    Issuer {
        /// `iss` of its statements
        #[arg(long)]
        iss: String,
        /// The public key: a file, a did:key or a did:jwk
        #[arg(long, value_name = "KEY")]
        key: String,
        #[command(flatten)]
        which: TrustFileArgs,
    },
}

impl Trust {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run(context),
            Self::List(which) => Listing::of(&which.find(context)?, None).print_table(&context.console),
            Self::Show { name, which } => {
                let listing = Listing::of(&which.find(context)?, Some(&name));
                if listing.anchors.is_empty() {
                    return Err(unknown(&name));
                }
                context.console.result(&listing)
            }
            Self::Remove { name, which } => {
                let mut file = which.find(context)?;
                let (log, issuer) = (file.store.remove_log(&name), file.store.remove_issuer(&name));
                if !log && !issuer {
                    return Err(unknown(&name));
                }
                file.write()
            }
        }
    }
}

impl TrustFileArgs {
    fn find(&self, context: &Context) -> Result<TrustFile, Failure> {
        TrustFile::find(context, self.trust.as_deref())
    }

    fn to_change(&self, context: &Context) -> Result<TrustFile, Failure> {
        TrustFile::to_change(context, self.trust.as_deref())
    }
}

impl Add {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let file = match self {
            Self::Issuer { iss, key, which } => {
                let mut file = which.to_change(context)?;
                file.store.add_issuer_key(&iss, CoseKey::bare(keyfile::read_public(&key)?));
                file
            }
            Self::Log {
                key,
                kid,
                iss,
                origin,
                checkpoint_key,
                retired_checkpoint_key,
                leaf_is_statement,
                service,
                which,
            } => {
                let mut file = which.to_change(context)?;
                let (mut log, listed) = match key {
                    Some(key) => (with_key(iss.clone(), origin.clone(), &key)?, Vec::new()),
                    None => {
                        let mut log = published(&service.connect(context)?, None)?;
                        let listed = std::mem::take(&mut log.keys);
                        log.keys = only(&listed, kid.as_deref())?;
                        (log, listed)
                    }
                };
                log.iss = iss.or(log.iss);
                log.origin = origin.or(log.origin);
                if leaf_is_statement {
                    log.leaf_rule = LeafRule::Statement;
                }
                log.checkpoint_keys = checkpoint_key.iter().map(ToString::to_string).collect();
                log.retired_checkpoint_keys = retired_checkpoint_key;
                keep_older_keys(&mut log, &file, &listed);
                file.store.put_log(log);
                file
            }
        };
        file.write()?;
        context.console.note(format!("wrote      {}", file.path.display()));
        context.console.result(&Listing::of(&file, None))
    }
}

/// Returns a log with this name and a key from a file.
fn with_key(iss: Option<String>, origin: Option<String>, key: &str) -> Result<TrustedLog, Failure> {
    let log =
        TrustedLog::new(iss.ok_or_else(needs_iss)?, "", vec![CoseKey::bare(keyfile::read_public(key)?)]);
    Ok(TrustedLog { origin, ..log })
}

/// Fetches the log's description from the service, with all keys or only the one with this kid.
pub fn published(service: &Service, kid: Option<&str>) -> Result<TrustedLog, Failure> {
    let policy: serde_json::Value = service.block_on(service.client.json("v1/policy"))?;
    let named = |name: &str| policy["policy"][name].as_str().unwrap_or_default().to_owned();
    let keys = service.block_on(service.client.keys())?;
    Ok(TrustedLog::new(named("iss"), named("origin"), only(keys.keys(), kid)?))
}

fn only(keys: &[CoseKey], kid: Option<&str>) -> Result<Vec<CoseKey>, Failure> {
    let keys: Vec<CoseKey> =
        keys.iter().filter(|key| kid.is_none_or(|kid| kid_of(key) == kid)).cloned().collect();
    if keys.is_empty() {
        return Err(Failure::new(
            Exit::NotFound,
            "no-such-key",
            "the service publishes no key with this kid",
        ));
    }
    Ok(keys)
}

fn retired_checkpoint_key(text: &str) -> Result<RetiredCheckpointKey, String> {
    let (key, size) = text.rsplit_once('=').ok_or("expected VKEY=SIZE")?;
    let key: VerifierKey = key.parse().map_err(|why| format!("{why}"))?;
    let size = size.parse().map_err(|_| "the size is a number")?;
    let end = KeyEnd { retired_size: Some(size), ..KeyEnd::default() };
    Ok(RetiredCheckpointKey { key: key.to_string(), end })
}

/// Returns a key's kid as base64url.
pub fn kid_of(key: &CoseKey) -> String {
    BASE64URL_NOPAD.encode(key.kid.as_deref().unwrap_or(&key.key.thumbprint()))
}

/// Keeps the older keys of a known log, whose signatures stay valid; only `trust remove` removes keys. Their ends of
/// validity are taken from the service, which can only reduce trust in this way.
fn keep_older_keys(log: &mut TrustedLog, file: &TrustFile, listed: &[CoseKey]) {
    let same_log = |known: &&TrustedLog| known.iss == log.iss && known.origin == log.origin;
    let known: Vec<&TrustedLog> = file.store.logs.iter().filter(same_log).collect();
    let given: Vec<String> = log.keys.iter().map(kid_of).collect();
    let older =
        known.iter().flat_map(|known| &known.keys).filter(|key| !given.contains(&kid_of(key))).cloned();
    let ended = |key: CoseKey| match listed.iter().find(|listed| listed.key == key.key) {
        Some(listed) if listed.end != KeyEnd::default() => CoseKey { end: listed.end, ..key },
        _ => key,
    };
    let older: Vec<CoseKey> = older.map(ended).collect();
    log.keys.splice(0..0, older);
    for known in known {
        for retired in &known.retired_checkpoint_keys {
            if !log.retired_checkpoint_keys.iter().any(|given| given.key == retired.key) {
                log.retired_checkpoint_keys.push(retired.clone());
            }
        }
        for key in &known.checkpoint_keys {
            if !log.checkpoint_keys.contains(key) {
                log.checkpoint_keys.push(key.clone());
            }
        }
    }
    let retired = &log.retired_checkpoint_keys;
    log.checkpoint_keys.retain(|key| !retired.iter().any(|retired| retired.key == *key));
}

fn needs_iss() -> Failure {
    Failure::new(Exit::Usage, "usage", "a log's key from a file needs --iss: the name in its receipts")
}

fn unknown(name: &str) -> Failure {
    Failure::new(Exit::NotFound, "no-such-anchor", format!("the trust file has no entry for {name}"))
        .hint("tabellion trust list")
}

#[derive(Serialize)]
struct Listing {
    file: String,
    anchors: Vec<TrustAnchor>,
}

#[derive(Serialize)]
struct TrustAnchor {
    kind: &'static str,
    iss: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    kids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checkpoint_keys: Vec<String>,
}

impl Listing {
    fn of(file: &TrustFile, only: Option<&str>) -> Self {
        let logs = file.store.logs.iter().map(|log| TrustAnchor {
            kind: "log",
            iss: log.iss.clone().unwrap_or_default(),
            origin: log.origin.clone(),
            kids: log.keys.iter().map(kid_of).collect(),
            checkpoint_keys: log.checkpoint_keys.clone(),
        });
        let issuers = file.store.issuers.iter().map(|issuer| TrustAnchor {
            kind: "issuer",
            iss: issuer.iss.clone(),
            origin: None,
            kids: issuer.keys.iter().map(kid_of).collect(),
            checkpoint_keys: Vec::new(),
        });
        let wanted = |anchor: &TrustAnchor| {
            only.is_none_or(|name| anchor.iss == name || anchor.origin.as_deref() == Some(name))
        };
        Self { file: file.path.display().to_string(), anchors: logs.chain(issuers).filter(wanted).collect() }
    }
}

/// The columns of the list: one row for each key.
const COLUMNS: &[Column] = &[
    Column::text("kind", 6),
    Column::text("iss", 0),
    Column::text("origin", 0),
    Column::text("signs", 0),
    Column::text("key", 0),
];

impl Listing {
    /// Prints one row for each key.
    fn print_table(&self, console: &Console) -> Result<(), Failure> {
        let rows: Vec<Vec<Cell>> = self.anchors.iter().flat_map(TrustAnchor::rows).collect();
        console.print(self, |out| Table::of(console, COLUMNS).write(out, &rows))
    }
}

impl TrustAnchor {
    fn rows(&self) -> Vec<Vec<Cell>> {
        let signs = if self.kind == "log" { "receipts" } else { "statements" };
        let row = |signs: &str, key: Cell| {
            let origin = self.origin.as_deref().unwrap_or("-");
            vec![Cell::text(self.kind), Cell::text(&self.iss), Cell::text(origin), Cell::text(signs), key]
        };
        let kids = self.kids.iter().map(|kid| row(signs, Cell::id(kid)));
        let vkeys = self.checkpoint_keys.iter().map(|vkey| row("checkpoints", Cell::vkey(vkey)));
        kids.chain(vkeys).collect()
    }
}

impl Report for Listing {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.anchors.iter().try_for_each(|anchor| {
            let origin = anchor.origin.as_deref().map(|origin| format!(" ({origin})")).unwrap_or_default();
            writeln!(out, "{:6}  {}{}", anchor.kind, safe(&anchor.iss), safe(&origin))?;
            anchor.kids.iter().try_for_each(|kid| writeln!(out, "        kid {}", safe(kid)))?;
            let keys = anchor.checkpoint_keys.iter();
            keys.map(|key| safe(key)).try_for_each(|key| writeln!(out, "        checkpoints {key}"))
        })
    }
}
