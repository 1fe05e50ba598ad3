//! The issuer's keys: a JWK set in a file, or at a pinned URL that is fetched again from time to time.
//!
//! An unknown key causes another fetch, but at a limited rate, so that tokens of strangers cannot cause many. If
//! fetching fails, the known set is used for a limited time with a warning; after that all tokens are refused (R-29:
//! keys that may have been revoked are not used forever).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use jose::json::{Limits, parse_strict};
use serde_json::Value;
use thiserror::Error;
use url::Url;

use super::token::BearerToken;
use super::token_key::TokenKey;
use crate::bounded_fetch::{FetchError, get_bounded, http_client};
use crate::config::KeySource;
use crate::limits::{
    JWKS_FAILED_PAUSE, JWKS_FRESH, JWKS_STALE, JWKS_UNKNOWN_PAUSE, MAX_JWKS_BYTES, MAX_JWKS_DEPTH,
    MAX_JWKS_KEYS,
};

/// Reason why the issuer's keys are not available.
#[derive(Clone, Debug, Error)]
pub enum KeysError {
    /// The file or the HTTP answer is not a set of public keys.
    #[error("the issuer's keys: {0}")]
    Unusable(String),
    /// The URL gave no answer, and the known keys are too old.
    #[error("the issuer's keys cannot be fetched: {0}")]
    Unreachable(String),
    /// The HTTP client cannot be built.
    #[error("{0}")]
    Setup(String),
}

impl From<FetchError> for KeysError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Setup(why) => Self::Setup(why),
            FetchError::Unreachable(why) => Self::Unreachable(why),
            FetchError::TooLong(_) => Self::Unusable(error.to_string()),
        }
    }
}

/// Parses a JWK set. Keys for other purposes or of unsupported types are skipped; a private or symmetric key is an
/// error.
pub fn parse(bytes: &[u8]) -> Result<Vec<TokenKey>, KeysError> {
    let bad = |why: String| KeysError::Unusable(why);
    let limits = Limits { bytes: MAX_JWKS_BYTES, depth: MAX_JWKS_DEPTH };
    let value = parse_strict(bytes, limits).map_err(|error| bad(error.to_string()))?;
    let keys = value.get("keys").and_then(Value::as_array).ok_or_else(|| bad("no JWK set".to_owned()))?;
    if keys.len() > MAX_JWKS_KEYS {
        return Err(bad(format!("more than {MAX_JWKS_KEYS} keys")));
    }
    let mut read = Vec::new();
    for key in keys {
        let members = key.as_object().ok_or_else(|| bad("a key is not an object".to_owned()))?;
        if members.contains_key("d") || members.contains_key("k") {
            return Err(bad("private or symmetric key material in a published set".to_owned()));
        }
        read.extend(TokenKey::read(members));
    }
    match read.is_empty() {
        true => Err(bad("no key that tokens can be checked with".to_owned())),
        false => Ok(read),
    }
}

/// The source of the issuer's keys, with the keys known so far.
pub enum KeyBook {
    /// Keys of a file, read once; a change of the file reloads the configuration.
    File(Arc<Vec<TokenKey>>),
    /// Keys fetched from a URL.
    Url(Box<RemoteKeys>),
}

/// A JWK set at a URL.
pub struct RemoteKeys {
    url: Url,
    http: reqwest::Client,
    fetched: Arc<FetchedState>,
}

/// The fetched keys of one source. They are kept when the configuration is reloaded; otherwise all tokens would be
/// refused while the issuer is unreachable.
#[derive(Default)]
struct FetchedState {
    known: Mutex<KnownKeys>,
    fetching: tokio::sync::Mutex<()>,
}

/// The fetched keys of all sources that a guard uses.
#[derive(Default)]
pub struct FetchedKeys(Mutex<HashMap<KeySource, Weak<FetchedState>>>);

#[derive(Default)]
struct KnownKeys {
    keys: Option<(Arc<Vec<TokenKey>>, Instant)>,
    tried: Option<Instant>,
    /// Time and reason of the last failed fetch. Without it, every token without a known key would cause another fetch,
    /// one after the other.
    failed: Option<(Instant, String)>,
}

impl FetchedKeys {
    /// The fetched keys of a source that a guard still uses; otherwise an empty state.
    fn of(&self, source: &KeySource) -> Arc<FetchedState> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, fetched| fetched.strong_count() > 0);
        if let Some(fetched) = all.get(source).and_then(Weak::upgrade) {
            return fetched;
        }
        let fetched = Arc::default();
        all.insert(source.clone(), Arc::downgrade(&fetched));
        fetched
    }
}

impl KeyBook {
    /// Opens a source. A file is read now; a URL is fetched when the first token arrives, unless `fetched` has its
    /// keys.
    pub fn open(source: &KeySource, fetched: &FetchedKeys) -> Result<Self, KeysError> {
        match source {
            KeySource::File(path) => {
                let bytes = read(path)?;
                Ok(Self::File(Arc::new(parse(&bytes)?)))
            }
            KeySource::Url { url, ca_file } => {
                let roots = ca_file.as_deref().map(read).transpose()?;
                let http = http_client(&[url], roots.as_deref())?;
                Ok(Self::Url(Box::new(RemoteKeys { url: url.clone(), http, fetched: fetched.of(source) })))
            }
        }
    }

    /// The keys with which to verify this token.
    pub async fn for_token(&self, token: &BearerToken) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        match self {
            Self::File(keys) => Ok(keys.clone()),
            Self::Url(remote) => remote.for_token(token).await,
        }
    }
}

impl RemoteKeys {
    async fn for_token(&self, token: &BearerToken) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        if let Some(keys) = self.usable(token) {
            return Ok(keys);
        }
        // One fetch at a time; a task that waited for it checks the result first.
        let _turn = self.fetched.fetching.lock().await;
        if let Some(keys) = self.usable(token) {
            return Ok(keys);
        }
        if let Some(why) = self.failed_just_now() {
            return self.stale(KeysError::Unreachable(why));
        }
        self.lock().tried = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                let keys = Arc::new(keys);
                self.lock().keys = Some((keys.clone(), Instant::now()));
                Ok(keys)
            }
            Err(error) => {
                self.lock().failed = Some((Instant::now(), error.to_string()));
                self.stale(error)
            }
        }
    }

    fn failed_just_now(&self) -> Option<String> {
        let known = self.lock();
        let (at, why) = known.failed.as_ref()?;
        (at.elapsed() < JWKS_FAILED_PAUSE).then(|| why.clone())
    }

    /// The known keys, if they are fresh and contain the token's key, or if a fetch was tried within
    /// [`JWKS_UNKNOWN_PAUSE`].
    fn usable(&self, token: &BearerToken) -> Option<Arc<Vec<TokenKey>>> {
        let known = self.lock();
        let (keys, at) = known.keys.as_ref()?;
        let asked = |pause: Duration| known.tried.is_some_and(|tried| tried.elapsed() < pause);
        let fresh = at.elapsed() < JWKS_FRESH;
        let held = keys.iter().any(|key| token.may_be_signed_with(key));
        let usable = at.elapsed() < JWKS_STALE && (fresh && held || asked(JWKS_UNKNOWN_PAUSE));
        usable.then(|| keys.clone())
    }

    fn stale(&self, error: KeysError) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        let known = self.lock();
        match &known.keys {
            Some((keys, at)) if at.elapsed() < JWKS_STALE => {
                tracing::warn!(%error, url = %self.url, "the issuer's keys cannot be fetched: the earlier ones stay in use");
                Ok(keys.clone())
            }
            _ => {
                tracing::error!(%error, url = %self.url, "the issuer's keys cannot be fetched: tokens are refused");
                Err(error)
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<TokenKey>, KeysError> {
        parse(&get_bounded(&self.http, &self.url, MAX_JWKS_BYTES).await?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KnownKeys> {
        self.fetched.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, KeysError> {
    let bytes =
        std::fs::read(path).map_err(|error| KeysError::Unusable(format!("{}: {error}", path.display())))?;
    match bytes.len() <= MAX_JWKS_BYTES {
        true => Ok(bytes),
        false => Err(KeysError::Unusable(format!("{} is too long", path.display()))),
    }
}
