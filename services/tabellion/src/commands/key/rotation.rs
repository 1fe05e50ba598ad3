//! `key rotate`, `key revoke` and `key list`: change the key table in the log's database, or through the service that
//! uses the database exclusively.
//!
//! A rotation announces the new key. The leading process adopts it between two batches, and this command waits for
//! that. If no process leads, this command adopts it. The new private key is stored next to the configured file before
//! it is announced, so that the log can sign after a crash at any point.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use client::Verb;
use data_encoding::BASE64URL_NOPAD;
use merkle::TreeSize;
use scitt::{Algorithm, CoseKey, Signer, SigningKey};
use serde::Serialize;
use store::{KeyAnnouncement, LogKey, LogStore, State, StoreError};
use tlog::note::{LocalKey, NoteSigner};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};
use transparency::{
    Announce, AnnouncementRow, Compromised, Config, KeyTable, file_of_kid, is_receipt_key, storage,
};

use crate::commands::entry::Admin;
use crate::commands::serve::check::other_setting_of_key;
use crate::commands::serve::failures::database;
use crate::commands::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::keyfile;
use crate::runtime;
use crate::service::{Service, nonsense};
use crate::show;

/// Interval of the checks whether a key was adopted, up to `--wait`.
const POLL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Rotation {
    /// Which key: receipt or checkpoint
    #[arg(value_enum, hide_possible_values = true, default_value_t = Kind::Receipt)]
    kind: Kind,
    /// Use this key instead of a new one
    #[arg(long, value_name = "FILE")]
    new_key: Option<PathBuf>,
    /// Mark the old key as stolen from this size on
    #[arg(long, value_name = "N")]
    compromised_since: Option<u64>,
    /// Maximum seconds until the service uses the new key
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

#[derive(Debug, Args)]
pub struct Revocation {
    /// The key's kid
    #[arg(allow_hyphen_values = true)]
    kid: String,
    /// First tree size that the stolen key may have signed
    #[arg(long = "since", alias = "compromised-since", value_name = "SIZE")]
    compromised_since: u64,
}

/// A key that signs tree heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Receipts.
    Receipt,
    /// C2SP checkpoints.
    Checkpoint,
}

impl Kind {
    fn of(key: &LogKey) -> Self {
        if is_receipt_key(key) { Self::Receipt } else { Self::Checkpoint }
    }

    fn file(self, config: &Config) -> &Path {
        match self {
            Self::Receipt => &config.keys.receipt,
            Self::Checkpoint => &config.keys.checkpoint,
        }
    }

    fn setting(self) -> &'static str {
        match self {
            Self::Receipt => "receipt_key",
            Self::Checkpoint => "checkpoint_key",
        }
    }

    fn signs(self) -> &'static str {
        match self {
            Self::Receipt => "receipts",
            Self::Checkpoint => "checkpoints",
        }
    }
}

/// The access to the key table.
enum KeyTableAccess {
    Database(Arc<dyn LogStore>),
    /// Through the service that uses the database exclusively.
    Service(Box<Service>),
}

struct KeyStore<'c> {
    runtime: Runtime,
    table: KeyTableAccess,
    config: &'c Config,
}

impl<'c> KeyStore<'c> {
    fn open(context: &Context, admin: Admin, config: &'c Config) -> Result<Self, Failure> {
        let runtime = runtime::multi_threaded()?;
        let table = match runtime.block_on(storage::open_existing(&config.database, &config.origin)) {
            Ok(store) => KeyTableAccess::Database(store),
            Err(StoreError::InUse(_)) => KeyTableAccess::Service(Box::new(admin.connect(context)?)),
            Err(error) => return Err(database(error)),
        };
        Ok(Self { runtime, table, config })
    }

    fn read(&self) -> Result<(Vec<LogKey>, Vec<KeyAnnouncement>), Failure> {
        match &self.table {
            KeyTableAccess::Database(store) => self.runtime.block_on(async {
                // The announcements are read first: a key adopted between the two reads is then seen twice, and not
                // missed.
                let announced = store.announced_keys().await.map_err(database)?;
                Ok((store.keys().await.map_err(database)?, announced))
            }),
            KeyTableAccess::Service(service) => {
                let table = self.served(service)?;
                let keys: Result<_, String> = table.keys.into_iter().map(LogKey::try_from).collect();
                let announced: Result<_, String> =
                    table.announced.into_iter().map(KeyAnnouncement::try_from).collect();
                Ok((keys.map_err(nonsense)?, announced.map_err(nonsense)?))
            }
        }
    }

    /// Returns whether the log is frozen: none of its keys is replaced again.
    fn is_frozen(&self) -> Result<bool, Failure> {
        match &self.table {
            KeyTableAccess::Database(store) => {
                let state = self.runtime.block_on(store.state()).map_err(database)?;
                Ok(matches!(state, State::Frozen { .. }))
            }
            KeyTableAccess::Service(service) => Ok(self.served(service)?.frozen),
        }
    }

    fn served(&self, service: &Service) -> Result<KeyTable, Failure> {
        let table: KeyTable = service.block_on(service.client.json("keys"))?;
        match table.origin == self.config.origin {
            true => Ok(table),
            false => Err(Failure::new(Exit::Failure, "another-log", "the service has another log")
                .fact("configured", &self.config.origin)
                .fact("answered", table.origin)),
        }
    }

    fn announce(&self, key: &KeyAnnouncement) -> Result<(), Failure> {
        match &self.table {
            KeyTableAccess::Database(store) => {
                self.runtime.block_on(store.announce_key(key)).map_err(database)
            }
            KeyTableAccess::Service(service) => {
                let asked = Announce { origin: self.config.origin.clone(), key: AnnouncementRow::from(key) };
                service.block_on(service.client.send_json(Verb::Post, "keys/announce", &asked))?;
                Ok(())
            }
        }
    }

    fn mark_compromised(&self, key: &LogKey, since: u64) -> Result<(), Failure> {
        refuse_other_sizes(key, since)?;
        match &self.table {
            KeyTableAccess::Database(store) => self
                .runtime
                .block_on(store.mark_compromised(&key.kid, TreeSize::new(since)))
                .map_err(database),
            KeyTableAccess::Service(service) => {
                let kid = BASE64URL_NOPAD.encode(&key.kid);
                let asked = Compromised { origin: self.config.origin.clone(), kid, since };
                service.block_on(service.client.send_json(Verb::Post, "keys/compromised", &asked))?;
                Ok(())
            }
        }
    }

    /// Adopts the key if no process leads. The epoch is raised first, so that a former leader that has not noticed its
    /// end cannot commit any more.
    fn take_up_if_nobody_leads(&self, kid: &[u8]) -> Result<(), Failure> {
        let KeyTableAccess::Database(store) = &self.table else { return Ok(()) };
        let take_up = async {
            let holder = format!("key rotate: process {}", std::process::id());
            let Some(_lease) = store.lease(&holder).await? else { return Ok(()) };
            let head = store.take_over(&holder).await?;
            store.take_up_key(kid, head.epoch, now()).await.map(drop)
        };
        self.runtime.block_on(take_up).map_err(database)
    }

    fn wait_for(&self, kid: &[u8], wait: Duration) -> Result<LogKey, Failure> {
        let deadline = Instant::now() + wait;
        loop {
            let (keys, announced) = self.read()?;
            if let Some(key) = keys.into_iter().find(|key| key.kid == kid) {
                return Ok(key);
            }
            if !announced.iter().any(|key| key.kid == kid) {
                return Err(Failure::new(
                    Exit::Refused,
                    "key-replaced",
                    "another key was announced meanwhile",
                )
                .hint("tabellion key list"));
            }
            if Instant::now() >= deadline {
                return Err(Failure::new(
                    Exit::TryAgain,
                    "key-not-taken-up",
                    "no process took the new key up in time",
                )
                .fact("waited", format!("{} s", wait.as_secs()))
                .why("it stays announced; the process that leads takes it up once it has the key file")
                .hint("tabellion key list"));
            }
            self.runtime.block_on(async { sleep(POLL).await });
        }
    }
}

impl Rotation {
    pub fn run(self, context: &Context, admin: Admin, config: &Config) -> Result<(), Failure> {
        let keys = KeyStore::open(context, admin, config)?;
        let (known, announced) = keys.read()?;
        let Replacement { old, new, from_size } = match self.unfinished(config, &known)? {
            Some(unfinished) => {
                let (old, new) = (BASE64URL_NOPAD.encode(&unfinished.old.kid), unfinished.new.kid());
                context.console.note(format!("continues  the rotation from {old} to {new}"));
                unfinished
            }
            None => self.replace(context, config, &keys, (&known, &announced))?,
        };
        // Until the configured file has the new key, a repeated command finds this rotation, and not another one.
        if let Some(since) = self.compromised_since {
            keys.mark_compromised(&old, since)?;
        }
        self.change_files(context, config, &new)?;
        context.console.result(&Rotated {
            signs: self.kind.signs(),
            kid: new.kid(),
            vkey: new.vkey(),
            file: self.kind.file(config).display().to_string(),
            from_size: from_size.get(),
            replaces: BASE64URL_NOPAD.encode(&old.kid),
        })
    }

    /// Returns the rotation whose new key the service uses already, while the configured file still has the key before
    /// it: the command that began it ended early. Without the new key's file, only a key given by `--new-key` begins another
    /// rotation: a repeated command must not replace the new key.
    fn unfinished(&self, config: &Config, known: &[LogKey]) -> Result<Option<Replacement>, Failure> {
        let Ok(configured) = NewKey::read(self.kind, config, self.kind.file(config).to_owned()) else {
            return Ok(None);
        };
        // Each key replaced the one before it.
        let mut successors = known.iter().filter(|key| Kind::of(key) == self.kind);
        let Some(old) = successors.find(|key| key.kid == configured.record.kid) else { return Ok(None) };
        let Some(successor) = successors.next().filter(|key| key.retired_at.is_none()) else {
            return Ok(None);
        };
        let file = match &self.new_key {
            Some(file) => file.clone(),
            None => file_of_kid(self.kind.file(config), &successor.kid),
        };
        match NewKey::read(self.kind, config, file.clone()) {
            Ok(new) if new.record.kid == successor.kid => {
                Ok(Some(Replacement { old: old.clone(), new, from_size: successor.from_size }))
            }
            _ if self.new_key.is_some() => Ok(None),
            _ => Err(Failure::new(
                Exit::TryAgain,
                "key-not-taken-up",
                "the log uses a new key already, and its file is not on this machine",
            )
            .fact("file", file.display().to_string())
            .hint("copy the file, or begin another rotation with --new-key")),
        }
    }

    /// Announces a new key for the one in force, and waits until it is used.
    fn replace(
        &self,
        context: &Context,
        config: &Config,
        keys: &KeyStore<'_>,
        (known, announced): (&[LogKey], &[KeyAnnouncement]),
    ) -> Result<Replacement, Failure> {
        let in_force = |key: &&LogKey| Kind::of(key) == self.kind && key.retired_at.is_none();
        let old = known.iter().find(in_force).ok_or_else(|| {
            Failure::new(Exit::NotFound, "no-such-key", "the log has no such key yet")
                .why("the first start of the service puts the configured keys on record")
        })?;
        if let Some(since) = self.compromised_since {
            refuse_other_sizes(old, since)?;
        }
        if keys.is_frozen()? {
            return Err(Failure::new(
                Exit::Refused,
                "log-frozen",
                "a frozen log signs nothing new: its keys stay",
            )
            .hint("tabellion key revoke --help"));
        }
        let waiting = announced.iter().find(|key| key.replaces == old.kid);
        let new = match waiting.filter(|_| self.new_key.is_none()).and_then(|key| self.resume(config, key)) {
            Some(new) => new,
            None => self.announce_new_key(config, keys, old)?,
        };
        context.console.note(format!("announced  {} (key file {})", new.kid(), new.file.display()));
        keys.take_up_if_nobody_leads(&new.record.kid)?;
        let taken = keys.wait_for(&new.record.kid, Duration::from_secs(self.wait))?;
        Ok(Replacement { old: old.clone(), new, from_size: taken.from_size })
    }

    /// Returns the key that an earlier rotation announced, if its private key is on this machine.
    fn resume(&self, config: &Config, announced: &KeyAnnouncement) -> Option<NewKey> {
        let file = file_of_kid(self.kind.file(config), &announced.kid);
        let new = NewKey::read(self.kind, config, file).ok()?;
        (new.record.kid == announced.kid).then_some(new)
    }

    /// Announces a new key. If that is refused, the file of a key that was generated for it is removed.
    fn announce_new_key(
        &self,
        config: &Config,
        keys: &KeyStore<'_>,
        old: &LogKey,
    ) -> Result<NewKey, Failure> {
        let new = self.new_key(config)?;
        match keys.announce(&new.announcement(&old.kid)) {
            Ok(()) => Ok(new),
            Err(failure) => {
                if matches!(failure.exit, Exit::Refused) && self.new_key.is_none() {
                    let _ = fs::remove_file(&new.file);
                }
                Err(failure)
            }
        }
    }

    fn new_key(&self, config: &Config) -> Result<NewKey, Failure> {
        let secret = match &self.new_key {
            Some(file) => keyfile::read(file)?,
            None => SigningKey::generate(self.algorithm(config)).map_err(unusable)?,
        };
        let secret = secret.with_algorithm(self.algorithm(config)).map_err(unusable)?;
        let other = other_setting_of_key(config, secret.public_key(), self.kind.setting());
        if let Some(setting) = other {
            let what = format!("this is the key of {setting}, and a key has one purpose");
            return Err(Failure::new(Exit::Usage, "usage", what).hint("tabellion key rotate --help"));
        }
        let mut new = NewKey::of(self.kind, config, secret)?;
        new.file = file_of_kid(self.kind.file(config), &new.record.kid);
        keyfile::write(&new.file, &new.secret)?;
        Ok(new)
    }

    fn algorithm(&self, config: &Config) -> Algorithm {
        match self.kind {
            Kind::Receipt => config.receipt_algorithm.algorithm(),
            Kind::Checkpoint => Algorithm::EdDsa,
        }
    }

    /// Moves the key of the configured file to a file named by its kid, for heads committed under it, and stores the new
    /// key in the configured file. Processes find both keys in either file.
    fn change_files(&self, context: &Context, config: &Config, new: &NewKey) -> Result<(), Failure> {
        let configured = self.kind.file(config);
        if let Ok(old) = NewKey::read(self.kind, config, configured.to_owned())
            && old.record.kid != new.record.kid
        {
            let previous = file_of_kid(configured, &old.record.kid);
            keyfile::write(&previous, &old.secret)?;
            context.console.note(format!("kept       {}", previous.display()));
        }
        let pem = new.secret.to_pkcs8_pem().map_err(unusable)?;
        files::write(configured, pem.as_bytes(), Access::Secret, Existing::Replace)
    }
}

impl Revocation {
    pub fn run(self, context: &Context, admin: Admin, config: &Config) -> Result<(), Failure> {
        let kid = BASE64URL_NOPAD
            .decode(self.kid.as_bytes())
            .map_err(|_| Failure::new(Exit::Usage, "usage", "a kid is unpadded base64url"))?;
        let keys = KeyStore::open(context, admin, config)?;
        let (known, _) = keys.read()?;
        let key = known.iter().find(|key| key.kid == kid).ok_or_else(|| {
            Failure::new(Exit::NotFound, "no-such-key", "no key with this kid is on record")
                .hint("tabellion key list")
        })?;
        if key.retired_at.is_none() && !keys.is_frozen()? {
            return Err(Failure::new(
                Exit::Refused,
                "key-in-use",
                format!("this key signs {}", Kind::of(key).signs()),
            )
            .why("a key is replaced before it is marked as compromised, so that the log can continue")
            .hint("tabellion key rotate --help"));
        }
        keys.mark_compromised(key, self.compromised_since)?;
        print_list(context, &keys)
    }
}

/// Refuses to mark a key from a size on that it does not sign: another key is meant, and a mark stays.
fn refuse_other_sizes(key: &LogKey, since: u64) -> Result<(), Failure> {
    let (first, end) = (key.from_size.get(), key.retired_size.map(TreeSize::get));
    if since >= first && end.is_none_or(|end| since <= end) {
        return Ok(());
    }
    let kid = BASE64URL_NOPAD.encode(&key.kid);
    let sizes = match end {
        Some(end) => format!("from {first} to {end}"),
        None => format!("from {first} on"),
    };
    let what = format!("key {kid} can be marked as compromised {sizes}, not from size {since} on");
    Err(Failure::new(Exit::Usage, "usage", what)
        .why("it signs no tree before its first size, and none once its successor has begun")
        .hint("tabellion key list"))
}

/// Prints all keys in the key table, and announced ones.
pub fn list(context: &Context, admin: Admin, config: &Config) -> Result<(), Failure> {
    print_list(context, &KeyStore::open(context, admin, config)?)
}

fn print_list(context: &Context, keys: &KeyStore<'_>) -> Result<(), Failure> {
    let (keys, announced) = keys.read()?;
    let recorded = keys.iter().map(RecordedKey::of).chain(announced.iter().map(RecordedKey::announced));
    context.console.result(&Recorded { keys: recorded.collect() })
}

/// A key that was replaced by one that the service uses.
struct Replacement {
    old: LogKey,
    new: NewKey,
    /// First tree size that the new key signs.
    from_size: TreeSize,
}

/// A new key for the log.
struct NewKey {
    secret: SigningKey,
    record: LogKey,
    file: PathBuf,
}

impl NewKey {
    fn of(kind: Kind, config: &Config, secret: SigningKey) -> Result<Self, Failure> {
        let (kid, public) = match kind {
            Kind::Receipt => {
                let kid = secret.public_key().thumbprint().to_vec();
                let public = CoseKey {
                    kid: Some(kid.clone()),
                    algorithm: Some(secret.algorithm()),
                    ..CoseKey::bare(secret.public_key().clone())
                };
                (kid, public.encode())
            }
            Kind::Checkpoint => {
                let name = config.origin.parse().map_err(unusable)?;
                let pem = secret.to_pkcs8_pem().map_err(unusable)?;
                let note = LocalKey::from_pkcs8_pem(name, &pem).map_err(unusable)?;
                (note.key().id().get().to_be_bytes().to_vec(), note.key().to_string().into_bytes())
            }
        };
        let record = LogKey::new(kid, public.into(), TreeSize::EMPTY);
        Ok(Self { secret, record, file: PathBuf::new() })
    }

    fn read(kind: Kind, config: &Config, file: PathBuf) -> Result<Self, Failure> {
        Ok(Self { file: file.clone(), ..Self::of(kind, config, keyfile::read(&file)?)? })
    }

    fn announcement(&self, replaces: &[u8]) -> KeyAnnouncement {
        let LogKey { kid, public, .. } = self.record.clone();
        KeyAnnouncement { kid, public, replaces: replaces.to_vec(), at: now() }
    }

    fn kid(&self) -> String {
        BASE64URL_NOPAD.encode(&self.record.kid)
    }

    fn vkey(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.record.public).ok();
        text.filter(|_| Kind::of(&self.record) == Kind::Checkpoint).map(str::to_owned)
    }
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failure, "key-unusable", error.to_string())
}

#[derive(Serialize)]
struct Rotated {
    signs: &'static str,
    kid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vkey: Option<String>,
    file: String,
    from_size: u64,
    replaces: String,
}

impl Report for Rotated {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "signs     {}\nkid       {}\nfrom size {}",
            self.signs,
            safe(&self.kid),
            self.from_size
        )?;
        writeln!(out, "replaces  {}\nfile      {}", safe(&self.replaces), safe(&self.file))?;
        self.vkey.iter().try_for_each(|vkey| writeln!(out, "vkey      {}", safe(vkey)))
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
    /// `None` until the key is adopted.
    from_size: Option<u64>,
    retired_at: Option<String>,
    retired_size: Option<u64>,
    compromised_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    announced_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vkey: Option<String>,
}

impl RecordedKey {
    fn of(key: &LogKey) -> Self {
        let kind = Kind::of(key);
        let vkey = (kind == Kind::Checkpoint).then(|| String::from_utf8_lossy(&key.public).into_owned());
        Self {
            kid: BASE64URL_NOPAD.encode(&key.kid),
            signs: kind.signs(),
            from_size: Some(key.from_size.get()),
            retired_at: key.retired_at.map(show::time),
            retired_size: key.retired_size.map(TreeSize::get),
            compromised_size: key.compromised_size.map(TreeSize::get),
            announced_at: None,
            vkey,
        }
    }

    fn announced(key: &KeyAnnouncement) -> Self {
        let listed = LogKey::new(key.kid.clone(), key.public.clone(), TreeSize::EMPTY);
        Self { from_size: None, announced_at: Some(show::time(key.at)), ..Self::of(&listed) }
    }
}

impl Report for Recorded {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.keys.iter().try_for_each(|key| {
            write!(out, "{:11}  {}  ", key.signs, safe(&key.kid))?;
            match (key.from_size, &key.announced_at) {
                (Some(size), _) => write!(out, "from size {size}")?,
                (None, at) => write!(out, "announced {}", at.as_deref().unwrap_or_default())?,
            }
            if let (Some(at), Some(size)) = (&key.retired_at, key.retired_size) {
                write!(out, ", retired {at} at size {size}")?;
            }
            if let Some(size) = key.compromised_size {
                write!(out, ", compromised from size {size} on")?;
            }
            writeln!(out)
        })
    }
}
