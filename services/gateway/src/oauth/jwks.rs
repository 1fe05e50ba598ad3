//! The issuer's keys: a set in a file, or at a URL that is pinned and fetched again from time to time.
//!
//! A key that the set does not hold is looked for once more, but not more often than a stranger's tokens may make us. A set
//! that cannot be fetched again is used for a while, with a warning; after that nobody is let in (R-29: what may have been
//! revoked is not served for ever).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use jose::json::{Limits, parse_strict};
use jose::jwk::PublicJwk;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use scitt::{Algorithm, PublicKey};
use serde_json::{Map, Value};
use thiserror::Error;
use url::Url;

use super::token::{Token, TokenAlgorithm};
use crate::config::KeySource;
use crate::limits::{
    JWKS_FAILED_PAUSE, JWKS_FETCH_TIME, JWKS_FRESH, JWKS_STALE, JWKS_UNKNOWN_PAUSE, MAX_JWKS_BYTES,
    MAX_JWKS_DEPTH, MAX_JWKS_KEYS,
};

/// Why there are no keys.
#[derive(Clone, Debug, Error)]
pub enum KeysError {
    /// The file or the answer is no set of public keys.
    #[error("the issuer's keys: {0}")]
    Unusable(String),
    /// The URL gave no answer, and what is known is too old.
    #[error("the issuer's keys are out of reach: {0}")]
    Unreachable(String),
    /// No HTTP client can be made.
    #[error("no HTTP client: {0}")]
    Setup(String),
}

/// One key of the set.
#[derive(Clone, Debug)]
pub struct TokenKey {
    /// Its name.
    pub kid: Option<String>,
    alg: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Other(PublicKey),
}

impl TokenKey {
    /// Whether it may be used so: by its own word, and by its type.
    pub fn is_for(&self, algorithm: TokenAlgorithm) -> bool {
        let ed25519 = |name: &str| matches!(name, "EdDSA" | "Ed25519");
        let said = self
            .alg
            .as_deref()
            .is_none_or(|alg| alg == algorithm.name() || (ed25519(alg) && ed25519(algorithm.name())));
        said && match (&self.material, cose(algorithm)) {
            (Material::Rsa { .. }, None) => true,
            (Material::Other(key), Some(algorithm)) => key.accepts(algorithm),
            _ => false,
        }
    }

    /// Whether it signed this.
    pub fn verifies(&self, algorithm: TokenAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, cose(algorithm)) {
            (Material::Rsa { n, e }, None) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (Material::Other(key), Some(algorithm)) => key.verify(algorithm, message, signature).is_ok(),
            _ => false,
        }
    }
}

fn cose(algorithm: TokenAlgorithm) -> Option<Algorithm> {
    match algorithm {
        TokenAlgorithm::Rs256 => None,
        TokenAlgorithm::Es256 => Some(Algorithm::Es256),
        TokenAlgorithm::EdDsa | TokenAlgorithm::Ed25519 => Some(Algorithm::EdDsa),
    }
}

/// Reads a set. Keys that are for something else, or of a type that we do not speak, are passed over; private ones are not.
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
        let members = key.as_object().ok_or_else(|| bad("a key is no object".to_owned()))?;
        if members.contains_key("d") || members.contains_key("k") {
            return Err(bad("private or symmetric key material in a published set".to_owned()));
        }
        read.extend(one(members));
    }
    match read.is_empty() {
        true => Err(bad("no key that tokens can be checked with".to_owned())),
        false => Ok(read),
    }
}

fn one(members: &Map<String, Value>) -> Option<TokenKey> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|usage| usage != "sig") {
        return None;
    }
    let material = match text("kty")? {
        "RSA" => {
            let number = |name| BASE64URL_NOPAD.decode(text(name)?.as_bytes()).ok();
            Material::Rsa { n: number("n")?, e: number("e")? }
        }
        _ => {
            let mut bare = members.clone();
            bare.remove("alg");
            Material::Other(PublicKey::from_jwk(&PublicJwk::from_value(&Value::Object(bare)).ok()?).ok()?)
        }
    };
    Some(TokenKey { kid: text("kid").map(str::to_owned), alg: text("alg").map(str::to_owned), material })
}

/// Where the keys are, and what is known of them.
pub enum KeyBook {
    /// Read once; a change of the file is a change of the configuration.
    File(Arc<Vec<TokenKey>>),
    /// Fetched.
    Url(Box<Remote>),
}

/// A set at a URL.
pub struct Remote {
    url: Url,
    http: reqwest::Client,
    fetched: Arc<Fetched>,
}

/// What was fetched from one source. A configuration that is read again goes on with it: otherwise nobody would be let in
/// while the issuer is out of reach.
#[derive(Default)]
struct Fetched {
    known: Mutex<Known>,
    fetching: tokio::sync::Mutex<()>,
}

/// What was fetched from every source that some guard uses.
#[derive(Default)]
pub struct FetchedKeys(Mutex<HashMap<KeySource, Weak<Fetched>>>);

#[derive(Default)]
struct Known {
    keys: Option<(Arc<Vec<TokenKey>>, Instant)>,
    tried: Option<Instant>,
    /// When the last fetch failed, and why: each token with no key at hand would try again, one after the other.
    failed: Option<(Instant, String)>,
}

impl FetchedKeys {
    /// What was fetched from a source, if a guard still uses it; otherwise nothing yet.
    fn of(&self, source: &KeySource) -> Arc<Fetched> {
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
    /// Reads a file's keys; those at a URL are fetched when the first token comes, unless they were `fetched` before.
    pub fn open(source: &KeySource, fetched: &FetchedKeys) -> Result<Self, KeysError> {
        match source {
            KeySource::File(path) => {
                let bytes = read(path)?;
                Ok(Self::File(Arc::new(parse(&bytes)?)))
            }
            KeySource::Url { url, ca_file } => {
                let roots = ca_file.as_deref().map(read).transpose()?;
                let http = http_client(roots.as_deref())?;
                Ok(Self::Url(Box::new(Remote { url: url.clone(), http, fetched: fetched.of(source) })))
            }
        }
    }

    /// The keys to check a token with.
    pub async fn for_token(&self, token: &Token) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        match self {
            Self::File(keys) => Ok(keys.clone()),
            Self::Url(remote) => remote.for_token(token).await,
        }
    }
}

impl Remote {
    async fn for_token(&self, token: &Token) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        if let Some(keys) = self.usable(token) {
            return Ok(keys);
        }
        // One fetch at a time; whoever waited looks again first.
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

    /// What is known, if it is fresh and holds the key, or was asked for a moment ago.
    fn usable(&self, token: &Token) -> Option<Arc<Vec<TokenKey>>> {
        let known = self.lock();
        let (keys, at) = known.keys.as_ref()?;
        let asked = |pause: Duration| known.tried.is_some_and(|tried| tried.elapsed() < pause);
        let fresh = at.elapsed() < JWKS_FRESH;
        let held = keys.iter().any(|key| token.means(key));
        let usable = at.elapsed() < JWKS_STALE && (fresh && held || asked(JWKS_UNKNOWN_PAUSE));
        usable.then(|| keys.clone())
    }

    fn stale(&self, error: KeysError) -> Result<Arc<Vec<TokenKey>>, KeysError> {
        let known = self.lock();
        match &known.keys {
            Some((keys, at)) if at.elapsed() < JWKS_STALE => {
                tracing::warn!(%error, url = %self.url, "the issuer's keys are as they were");
                Ok(keys.clone())
            }
            _ => {
                tracing::error!(%error, url = %self.url, "nobody is let in");
                Err(error)
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<TokenKey>, KeysError> {
        parse(&get_bounded(&self.http, &self.url, MAX_JWKS_BYTES).await?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
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

/// A client that goes nowhere but where it is sent. With roots of its own it believes those and no others.
pub fn http_client(roots: Option<&[u8]>) -> Result<reqwest::Client, KeysError> {
    let setup = |error: reqwest::Error| KeysError::Setup(error.to_string());
    // Whoever came first chose the provider; ours is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(JWKS_FETCH_TIME);
    if let Some(pem) = roots {
        builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem).map_err(setup)?);
    }
    builder.build().map_err(setup)
}

/// A body of at most so many bytes, from an answer of 200.
pub async fn get_bounded(http: &reqwest::Client, url: &Url, most: usize) -> Result<Vec<u8>, KeysError> {
    let unreachable = |error: reqwest::Error| KeysError::Unreachable(error.without_url().to_string());
    let mut answer = http.get(url.clone()).send().await.map_err(unreachable)?;
    if answer.status() != http::StatusCode::OK {
        return Err(KeysError::Unreachable(format!("answered {}", answer.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > most {
            return Err(KeysError::Unusable(format!("longer than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
