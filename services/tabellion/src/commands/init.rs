//! `tabellion init`: creates a folder with configuration, policy and keys for a new log, unless it contains a
//! configuration.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use registration::policy::{self, Identity};
use scitt::{Algorithm, Signer};
use transparency::Database;
use url::Url;

use super::serve::check;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members, safe, shell};
use crate::context::Context;
use crate::exposed_settings::is_loopback;
use crate::exposed_settings::log::visible_password;
use crate::keyfile::{self, KeyNames};
use crate::settings::{CONFIG_FILE, Settings, has_password};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion init mylog --origin log.example.org --db sqlite:data/log.db")]
pub struct Init {
    /// The folder for the new files
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The log's permanent name: a host and path without scheme
    #[arg(long)]
    origin: String,
    /// The service's public URL [default: https:// and the origin]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// sqlite:PATH or postgres://USER@HOST/NAME
    #[arg(long, value_name = "URL")]
    db: String,
    /// The receipts' signature algorithm: ES256, ES384 or EdDSA
    #[arg(long, default_value = "ES256", value_parser = super::issuer::algorithm)]
    alg: Algorithm,
}

impl Init {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = self.folder.join(CONFIG_FILE);
        refuse_existing(&config)?;
        let database = self.refuse_mistakes()?;
        if has_password(&self.db) {
            context.console.note(format!("warning: db: {}", visible_password("db").what));
        }
        fs::create_dir_all(self.folder.join("keys"))?;
        if let Database::Sqlite { path, .. } = database
            && let Some(folder) = self.folder.join(path).parent()
        {
            fs::create_dir_all(folder)?;
        }
        let mut made = UnfinishedLog::default();
        let receipt = self.key("receipt", self.alg, &mut made)?;
        let checkpoint = self.key("checkpoint", Algorithm::EdDsa, &mut made)?;
        let operator = self.key("operator", Algorithm::Es256, &mut made)?;
        let index = self.key("index", Algorithm::Es256, &mut made)?;
        self.write_policy(operator.public_key(), index.public_key(), &mut made)?;
        files::write(&config, self.config_text().as_bytes(), self.config_access(), Existing::Keep)?;
        made.files.clear();
        let receipt = self.names(&receipt, "receipt");
        let checkpoint = self.names(&checkpoint, "checkpoint");
        let operator = self.names(&operator, "operator");
        let index = self.names(&index, "index");
        let (next, config) = (self.next_steps(&config), config.display().to_string());
        context.console.print(&members! { config, receipt, checkpoint, operator, index, next }, |out| {
            writeln!(out, "wrote      {}", safe(&config))?;
            let keys = [
                ("receipts", &receipt),
                ("checkpoints", &checkpoint),
                ("policies", &operator),
                ("search index", &index),
            ];
            for (purpose, key) in keys {
                writeln!(out, "key        {purpose:12} {:6} kid {}", key.alg, key.kid)?;
            }
            next.iter().try_for_each(|step| writeln!(out, "next       {}", safe(step)))
        })
    }

    /// Checks that `serve` could start with the new configuration, before anything is written.
    fn refuse_mistakes(&self) -> Result<Database, Failure> {
        let settings = Settings::of(self.values());
        let config = check::runnable(&settings).map_err(|failure| failure.hint("tabellion init --help"))?;
        Ok(config.database)
    }

    /// Returns the permissions of the configuration file: [`Access::Secret`] if it contains the database's password.
    fn config_access(&self) -> Access {
        if has_password(&self.db) { Access::Secret } else { Access::Ordinary }
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let public_url = self.public_url.clone().unwrap_or_else(|| self.iss());
        let alg = if self.alg == Algorithm::EdDsa { "EdDSA" } else { self.alg.name() };
        let listen = listen_for(&public_url);
        // Without it, commands use the default address of the listener. Port 0 is a free one, known after the start only.
        let log_url = listen.as_ref().filter(|address| !address.ends_with(":0"));
        let log_url = log_url.map(|address| ("log_url", format!("http://{address}")));
        [
            ("origin", self.origin.clone()),
            ("public_url", public_url),
            ("db", self.db.clone()),
            ("receipt_alg", alg.into()),
        ]
        .into_iter()
        .chain(listen.map(|address| ("listen", address)))
        .chain(log_url)
        .collect()
    }

    fn key(
        &self,
        purpose: &str,
        algorithm: Algorithm,
        made: &mut UnfinishedLog,
    ) -> Result<scitt::SigningKey, Failure> {
        let key = keyfile::generate(&self.key_path(purpose), algorithm)?;
        made.files.push(self.key_path(purpose));
        Ok(key)
    }

    fn names(&self, key: &scitt::SigningKey, purpose: &str) -> KeyNames {
        KeyNames::of(key.public_key(), Some(&self.key_path(purpose)))
    }

    fn key_path(&self, purpose: &str) -> PathBuf {
        self.folder.join("keys").join(format!("{purpose}.pem"))
    }

    fn iss(&self) -> String {
        format!("https://{}", self.origin)
    }

    fn write_policy(
        &self,
        operator: &scitt::PublicKey,
        index: &scitt::PublicKey,
        made: &mut UnfinishedLog,
    ) -> Result<(), Failure> {
        let file = self.folder.join("policy.toml");
        let is_new = !file.exists();
        let text = policy::for_init(Identity { iss: &self.iss(), origin: &self.origin, operator, index });
        files::write(&file, text.as_bytes(), Access::Ordinary, Existing::Keep)?;
        made.files.extend(is_new.then_some(file));
        Ok(())
    }

    fn next_steps(&self, config: &Path) -> Vec<String> {
        let password = has_password(&self.db).then(|| {
            let config = config.display();
            format!("{config} holds a password and is for its owner only; a file named by TABELLION_DB_FILE can hold it instead")
        });
        let config = shell::path(config);
        let steps = [
            "list the issuers you admit in policy.toml (tabellion policy admit --revision 0)".into(),
            format!("tabellion config check --config {config}"),
            format!("tabellion serve --config {config}"),
        ];
        password.into_iter().chain(steps).collect()
    }

    fn config_text(&self) -> String {
        let line = |(key, value): (&str, String)| format!("{key:11} = {}\n", toml::Value::String(value));
        let values: String = self.values().into_iter().map(line).collect();
        format!(
            "# `tabellion config env` explains every setting; `tabellion config check` says whether this can run.\n{values}"
        )
    }
}

/// The keys and the policy of a log that has no configuration yet. Dropped, it removes them, so that a repeated command can
/// begin again.
#[derive(Default)]
struct UnfinishedLog {
    files: Vec<PathBuf>,
}

impl Drop for UnfinishedLog {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

fn refuse_existing(config: &Path) -> Result<(), Failure> {
    if config.exists() {
        return Err(Failure::new(Exit::Exists, "log-exists", format!("{} exists", config.display()))
            .why("a log keeps its name and keys for ever")
            .hint("name another folder"));
    }
    Ok(())
}

/// Returns the listener's address for a loopback `public_url`, which clients reach without a proxy; otherwise `None`. Below
/// a path there is a proxy, which removes the path.
fn listen_for(public_url: &str) -> Option<String> {
    let is_direct = |url: &Url| url.scheme() == "http" && is_loopback(url) && url.path() == "/";
    let url = Url::parse(public_url).ok().filter(is_direct)?;
    let host = url.host_str().filter(|host| *host != "localhost").unwrap_or("127.0.0.1");
    Some(format!("{host}:{}", url.port_or_known_default()?))
}
