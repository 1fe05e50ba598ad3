//! Opening webhooks as configured: reads keys and secrets from their files.

use std::io;
use std::path::{Path, PathBuf};

use durable::FileAccess;

use super::{NotAKey, SetupError, SharedSecret, WebhookKey, WebhookReceiver, Webhooks};
use crate::config::{Config, Hook};
use crate::limits::KEY_FILE_BYTES;

/// Name of the key file in the state directory.
const KEY: &str = "webhook.key";

/// Errors of opening webhooks.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A receiver's URL cannot be used.
    #[error(transparent)]
    Target(#[from] SetupError),
    /// A file cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        why: io::Error,
    },
    /// A key file is accessible to the group or to others.
    #[error("{}: others may read it (chmod 600)", .0.display())]
    Open(PathBuf),
    /// The file does not contain a valid key.
    #[error("{}: {why}", path.display())]
    NotAKey {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        why: NotAKey,
    },
}

impl Webhooks {
    /// Opens all configured receivers. If no key file is configured, a key is generated in the state directory at the
    /// first start.
    ///
    /// # Errors
    /// [`OpenError`] if a key or secret cannot be read, or a receiver cannot be used.
    pub fn open(config: &Config) -> Result<Self, OpenError> {
        let targets = config.webhooks.iter().map(target).collect::<Result<Vec<_>, _>>()?;
        let key = match (&config.webhook_key, targets.is_empty()) {
            (Some(path), _) => read(path)?.ok_or_else(|| missing(path))?,
            (None, false) => read_or_make(&config.state_dir.join(KEY))?,
            (None, true) => made(&config.state_dir)?,
        };
        Ok(Self::new(&config.state_dir, key, targets)?)
    }
}

fn target(hook: &Hook) -> Result<WebhookReceiver, OpenError> {
    let secret = hook.secret_file.as_deref().map(|path| {
        let text = private_text(path)?.ok_or_else(|| missing(path))?;
        text.parse::<SharedSecret>().map_err(|why| OpenError::NotAKey { path: path.to_owned(), why })
    });
    let (url, allow_private) = (hook.url.clone(), hook.allow_private);
    Ok(WebhookReceiver { url, allow_private, secret: secret.transpose()? })
}

fn read_or_make(path: &Path) -> Result<WebhookKey, OpenError> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let key = made(path)?;
    let text = key.to_secret_text();
    let folder = path.parent().unwrap_or(Path::new("."));
    durable::make_folder(folder, FileAccess::Secret)
        .and_then(|()| {
            Ok(durable::replace(path, format!("{}\n", text.as_str()).as_bytes(), FileAccess::Secret)?)
        })
        .map_err(|why| OpenError::File { path: path.to_owned(), why })?;
    Ok(key)
}

fn made(path: &Path) -> Result<WebhookKey, OpenError> {
    WebhookKey::generate()
        .map_err(|why| OpenError::File { path: path.to_owned(), why: io::Error::other(why.to_string()) })
}

fn read(path: &Path) -> Result<Option<WebhookKey>, OpenError> {
    let Some(text) = private_text(path)? else { return Ok(None) };
    let key = text.parse().map_err(|why| OpenError::NotAKey { path: path.to_owned(), why })?;
    Ok(Some(key))
}

fn private_text(path: &Path) -> Result<Option<String>, OpenError> {
    let failed = |why: io::Error| OpenError::File { path: path.to_owned(), why };
    let Some(bytes) = durable::read(path, KEY_FILE_BYTES).map_err(failed)? else { return Ok(None) };
    if !durable::is_private(&std::fs::metadata(path).map_err(failed)?) {
        return Err(OpenError::Open(path.to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|why| failed(io::Error::other(why)))
}

fn missing(path: &Path) -> OpenError {
    OpenError::File { path: path.to_owned(), why: io::ErrorKind::NotFound.into() }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn config(state: &Path, hooks: Vec<Hook>) -> Config {
        let text = "state_dir = \"s\"\n[[log]]\nname = \"a\"\nurl = \"http://a/\"\nvkey = \
                    \"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k\"\n";
        let config = Config::from_toml(text, state).unwrap();
        Config { state_dir: state.to_owned(), webhooks: hooks, ..config }
    }

    fn hook() -> Hook {
        Hook { url: "https://hooks.example/".into(), allow_private: false, secret_file: None }
    }

    #[test]
    fn the_key_is_made_once_and_for_its_owner_only() {
        let state = tempfile::tempdir().unwrap();
        assert!(Webhooks::open(&config(state.path(), vec![])).is_ok());
        assert!(!state.path().join(KEY).exists(), "nobody is told, so there is no key");
        let first = Webhooks::open(&config(state.path(), vec![hook()])).unwrap().public_key();
        let again = Webhooks::open(&config(state.path(), vec![hook()])).unwrap().public_key();
        assert_eq!(first, again);
        let path = state.path().join(KEY);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let refused = Webhooks::open(&config(state.path(), vec![hook()])).err();
        assert!(matches!(refused, Some(OpenError::Open(_))), "{refused:?}");
    }

    #[test]
    fn a_key_that_was_named_is_not_made() {
        let state = tempfile::tempdir().unwrap();
        let named = Config {
            webhook_key: Some(state.path().join("named.key")),
            ..config(state.path(), vec![hook()])
        };
        assert!(matches!(Webhooks::open(&named).err(), Some(OpenError::File { .. })));
    }
}
