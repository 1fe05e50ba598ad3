//! SCRAPI over HTTP, from the client's side (draft-ietf-scitt-scrapi-11).
//!
//! A [`Client`] registers, waits and fetches; [`Client::register`] returns no receipt that the verifier has not passed.
//! Peers that speak older drafts are met half-way: 302 and 303 mean "keep polling", the `Location` may change at
//! the end, and a key may come in an array of one. A [`witness`] is asked in its own protocol.
//!
//! Not here: whom to trust (`verifier::TrustStore`), and keeping anything on disk.

mod batch;
mod evaluate;
mod events;
mod multipart;
mod retry;
mod tell;
pub mod tlog;
mod wire;
pub mod witness;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use merkle::EntryDigest;
use reqwest::Url;
use scitt::limits::RECEIPT_BYTES;
use scitt::{KeySet, Problem, PublicKey, SignedStatement};
use serde::de::DeserializeOwned;
use thiserror::Error;
use verifier::{TrustStore, Verdict};

pub use batch::{BATCH_STATEMENTS, Message};
pub use evaluate::{Evaluation, Violation};
pub use events::{Begin, Event, Events};
pub use tell::Verb;

use multipart::Body;
use retry::Backoff;
use wire::{Answer, MAX_ANSWER_BYTES};

/// How long one exchange may take.
const EXCHANGE: Duration = Duration::from_secs(30);

/// A problem's code when the log takes nothing before its operator has acted.
const HALTED: &str = "log-halted";
/// The code of a problem that says that what the service stores is damaged.
const DAMAGED: &str = "database-damaged";

/// Why there is no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No such entry or key; or its registration failed.
    #[error("{0}")]
    NotFound(Box<Problem>),
    /// The service will not do it, and asking again will not help.
    #[error("{problem}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The service's words.
        problem: Box<Problem>,
    },
    /// Too many requests, or the service is busy or down: patience ran out, or waiting is no use, as the log is halted and
    /// its operator must act.
    #[error("{problem}")]
    TryAgain {
        /// The HTTP status.
        status: StatusCode,
        /// The service's words.
        problem: Box<Problem>,
    },
    /// No answer came.
    #[error("cannot reach the service: {0}")]
    Unreachable(String),
    /// The registration is accepted and still runs.
    #[error("still being registered: {0}")]
    StillRunning(Url),
    /// The service answered with something that is not an answer.
    #[error("the service's answer makes no sense: {0}")]
    Nonsense(String),
    /// The receipt that came does not verify.
    #[error("the receipt does not verify: {}", decisive(.0))]
    Unverified(Box<Verdict>),
    /// This client cannot be made.
    #[error("{0}")]
    Setup(String),
}

impl ClientError {
    /// Whether the service says that what it stores is damaged.
    pub fn is_damage(&self) -> bool {
        self.has_code(DAMAGED)
    }

    /// Whether the same request gets the same answer until an operator acts, although its status says otherwise.
    fn is_lasting(&self) -> bool {
        self.has_code(HALTED) || self.has_code(DAMAGED)
    }

    fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::TryAgain { problem, .. } if problem.get_code() == Some(code))
    }
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to keep trying and polling altogether. A service that was never reached is not waited for.
    pub patience: Duration,
    /// Certificates to believe besides the system's, PEM.
    pub extra_roots: Option<Bytes>,
    /// A bearer token for the service's door.
    pub token: Option<String>,
    /// The Unix socket to speak over. The URL then says only what is asked for, not where.
    pub unix_socket: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: Duration::from_secs(60), extra_roots: None, token: None, unix_socket: None }
    }
}

/// A registered statement and its verified receipt.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Where fresh receipts for it are found.
    pub location: Url,
    /// The receipt, as it came.
    pub receipt: Bytes,
    /// What the verifier checked.
    pub verdict: Verdict,
}

/// A transparency service, seen from outside.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
    options: Options,
    /// Whether any answer ever came: only then is silence something that may pass.
    reached: Arc<AtomicBool>,
}

impl Client {
    /// A client of the service at `base`.
    ///
    /// # Errors
    /// If `base` is not an HTTP URL, or the extra roots are not certificates.
    pub fn new(base: &str, options: Options) -> Result<Self, ClientError> {
        Ok(Self { base: wire::prefix(base)?, http: http_client(&options)?, options, reached: Arc::default() })
    }

    /// The service's URL, with a slash at its end.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Registers a statement, waits for its receipt and verifies it against `trust` at `now` (Unix seconds).
    ///
    /// Safe to repeat: the statement is its own idempotency key.
    ///
    /// # Errors
    /// If the service refuses, patience runs out, or the receipt does not verify.
    pub async fn register(
        &self,
        statement: &SignedStatement,
        trust: &TrustStore,
        now: u64,
    ) -> Result<Registered, ClientError> {
        self.register_message(statement, statement.bytes(), trust, now).await
    }

    /// The same for a statement with what came beside it: `message` is what is sent, certificates in its unprotected
    /// header included.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub async fn register_message(
        &self,
        statement: &SignedStatement,
        message: &Bytes,
        trust: &TrustStore,
        now: u64,
    ) -> Result<Registered, ClientError> {
        let (location, receipt) = self.submit(message).await?;
        self.verified(statement, location, receipt, trust, now)
    }

    /// The same for a statement whose payload is detached: the service checks the signature over `payload`, and keeps it
    /// if its policy says so.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub async fn register_detached(
        &self,
        statement: &SignedStatement,
        message: &Bytes,
        payload: &[u8],
        trust: &TrustStore,
        now: u64,
    ) -> Result<Registered, ClientError> {
        let (location, receipt) = self.send(&Body::form(message, payload)?).await?;
        self.verified(statement, location, receipt, trust, now)
    }

    fn verified(
        &self,
        statement: &SignedStatement,
        location: Url,
        receipt: Bytes,
        trust: &TrustStore,
        now: u64,
    ) -> Result<Registered, ClientError> {
        let verdict = verifier::verify_receipt(statement, &receipt, trust, now);
        if !verdict.is_verified() {
            return Err(ClientError::Unverified(Box::new(verdict)));
        }
        Ok(Registered { location, receipt, verdict })
    }

    /// Registers a statement and waits for its receipt, which nobody has verified yet.
    ///
    /// # Errors
    /// If the service refuses or patience runs out.
    pub async fn submit(&self, message: &Bytes) -> Result<(Url, Bytes), ClientError> {
        self.send(&Body::statement(message)).await
    }

    async fn send(&self, body: &Body) -> Result<(Url, Bytes), ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        let url = self.url("entries")?;
        let answer =
            self.post_until_taken(&url, body, ("application/cose", RECEIPT_BYTES), &mut backoff).await?;
        let location = answer.location().ok_or_else(|| ClientError::Nonsense("no Location".into()))?;
        if answer.status == StatusCode::CREATED && !answer.body.is_empty() {
            return Ok((location, answer.body));
        }
        self.poll(self.own(location)?, answer.retry_after(), &mut backoff).await
    }

    /// A fresh receipt for an entry.
    ///
    /// # Errors
    /// If there is no such entry, or it is still being registered.
    pub async fn receipt(&self, entry: &EntryDigest) -> Result<Bytes, ClientError> {
        self.receipt_named(&entry.to_string()).await
    }

    /// A fresh receipt for an entry of a service that has its own names for entries.
    ///
    /// # Errors
    /// If there is no such entry, or it is still being registered.
    pub async fn receipt_named(&self, entry: &str) -> Result<Bytes, ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        let (_, receipt) = self.poll(self.url(&format!("entries/{entry}"))?, None, &mut backoff).await?;
        Ok(receipt)
    }

    /// The statement of an entry, as it was registered.
    ///
    /// # Errors
    /// If there is no such entry, or what came is not the statement that was asked for.
    pub async fn statement(&self, entry: &EntryDigest) -> Result<SignedStatement, ClientError> {
        let body = self.get(&format!("v1/entries/{entry}/statement"), "application/cose").await?.body;
        let statement =
            SignedStatement::parse(body).map_err(|error| ClientError::Nonsense(error.to_string()))?;
        if statement.digest() != *entry {
            return Err(ClientError::Nonsense(format!(
                "asked for entry {entry}, got {}",
                statement.digest()
            )));
        }
        Ok(statement)
    }

    /// The registration policy in force: the statement that published it. Nobody has verified it yet.
    ///
    /// # Errors
    /// If the service has none, or what came is not a statement.
    pub async fn policy(&self) -> Result<SignedStatement, ClientError> {
        let body = self.get("v1/policy", "application/cose").await?.body;
        SignedStatement::parse(body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }

    /// The keys that the service publishes. Whoever believes them must have another reason to.
    ///
    /// # Errors
    /// If the service does not answer with a COSE_KeySet.
    pub async fn keys(&self) -> Result<KeySet, ClientError> {
        let body = self.get(".well-known/scitt-keys", "application/cbor").await?.body;
        KeySet::parse(&body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }

    /// One key by its kid; an array of one, as older drafts had it, is taken too.
    ///
    /// # Errors
    /// If there is no such key.
    pub async fn key(&self, kid: &[u8]) -> Result<PublicKey, ClientError> {
        let name = data_encoding::BASE64URL_NOPAD.encode(kid);
        let body = self.get(&format!(".well-known/scitt-keys/{name}"), "application/cbor").await?.body;
        PublicKey::from_cose_key(&body)
            .ok()
            .or_else(|| Some(KeySet::parse(&body).ok()?.keys().first()?.key.clone()))
            .ok_or_else(|| ClientError::Nonsense("not a COSE_Key".into()))
    }

    /// A JSON resource under `/v1`.
    ///
    /// # Errors
    /// If there is none, or it does not read as `T`.
    pub async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let body = self.get(path, "application/json").await?.body;
        serde_json::from_slice(&body).map_err(|error| ClientError::Nonsense(format!("{path}: {error}")))
    }

    /// A resource as it is: a tile, a checkpoint.
    ///
    /// # Errors
    /// If there is none.
    pub async fn bytes(&self, path: &str) -> Result<Bytes, ClientError> {
        self.bytes_as(path, "*/*").await
    }

    /// A resource in one of its forms: a proof as a receipt or as a tlog-proof.
    ///
    /// # Errors
    /// If there is none.
    pub async fn bytes_as(&self, path: &str, media_type: &'static str) -> Result<Bytes, ClientError> {
        Ok(self.get(path, media_type).await?.body)
    }

    /// One page of a JSON resource under `/v1`, and the path of the next one while there is more.
    ///
    /// # Errors
    /// If there is none, or it does not read as `T`.
    pub async fn page<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Option<String>), ClientError> {
        let answer = self.get(path, "application/json").await?;
        let page = serde_json::from_slice(&answer.body)
            .map_err(|error| ClientError::Nonsense(format!("{path}: {error}")))?;
        Ok((page, answer.next()))
    }

    async fn post_until_taken(
        &self,
        url: &Url,
        body: &Body,
        (accept, most): (&'static str, usize),
        backoff: &mut Backoff,
    ) -> Result<Answer, ClientError> {
        loop {
            let request = self.authorized(self.http.post(url.clone()));
            let request = request.header(CONTENT_TYPE, &body.content_type).body(body.bytes.clone());
            match self.heard(Answer::to(request, accept, most).await) {
                Ok(answer) if answer.status.is_success() || answer.status.is_redirection() => {
                    return Ok(answer);
                }
                answer => self.wait_or_fail(answer, backoff).await?,
            }
        }
    }

    async fn poll(
        &self,
        mut location: Url,
        mut asked: Option<Duration>,
        backoff: &mut Backoff,
    ) -> Result<(Url, Bytes), ClientError> {
        let mut first = asked.is_none();
        loop {
            if !std::mem::take(&mut first) {
                let Some(wait) = backoff.next(asked) else { return Err(ClientError::StillRunning(location)) };
                tokio::time::sleep(wait).await;
            }
            let answer = self.exchange(location.clone(), "application/cose", RECEIPT_BYTES).await;
            match answer {
                Ok(answer) if answer.status == StatusCode::OK => {
                    return Ok((answer.location().unwrap_or(location), answer.body));
                }
                Ok(answer) if is_not_yet(answer.status) => {
                    asked = answer.retry_after();
                    location = answer.location().map_or(Ok(location), |location| self.own(location))?;
                }
                Ok(answer) if answer.is_transient() => asked = answer.retry_after(),
                Ok(answer) => return Err(answer.into_error()),
                Err(ClientError::Unreachable(_)) if self.may_return() => asked = None,
                Err(error) => return Err(error),
            }
        }
    }

    async fn get(&self, path: &str, accept: &'static str) -> Result<Answer, ClientError> {
        let url = self.url(path)?;
        let mut backoff = Backoff::within(self.options.patience);
        loop {
            match self.exchange(url.clone(), accept, MAX_ANSWER_BYTES).await {
                Ok(answer) if answer.status.is_success() => return Ok(answer),
                answer => self.wait_or_fail(answer, &mut backoff).await?,
            }
        }
    }

    /// Waits before another try; fails when another try is no use or patience is used up.
    async fn wait_or_fail(
        &self,
        answer: Result<Answer, ClientError>,
        backoff: &mut Backoff,
    ) -> Result<(), ClientError> {
        let (asked, error) = match answer {
            Ok(answer) if answer.is_transient() => (answer.retry_after(), answer.into_error()),
            Ok(answer) => return Err(answer.into_error()),
            Err(error @ ClientError::Unreachable(_)) if self.may_return() => (None, error),
            Err(error) => return Err(error),
        };
        if error.is_lasting() {
            return Err(error);
        }
        let Some(wait) = backoff.next(asked) else { return Err(error) };
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn exchange(&self, url: Url, accept: &'static str, most: usize) -> Result<Answer, ClientError> {
        self.heard(Answer::to(self.authorized(self.http.get(url)), accept, most).await)
    }

    /// Where to ask next. Nobody but the service that was named is asked, and nobody else sees the token: a service that
    /// calls itself otherwise than it is reached, behind a proxy, means its own entry.
    fn own(&self, location: Url) -> Result<Url, ClientError> {
        if location.origin() == self.base.origin() {
            return Ok(location);
        }
        match location.path().rsplit_once("/entries/") {
            Some((_, entry)) if !entry.is_empty() => self.url(&format!("entries/{entry}")),
            _ => Err(ClientError::Nonsense(format!("it sends us to {location}, which is not {}", self.base))),
        }
    }

    fn patience(&self) -> Duration {
        self.options.patience
    }

    fn heard(&self, answer: Result<Answer, ClientError>) -> Result<Answer, ClientError> {
        if answer.is_ok() {
            self.reached.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Whether silence may pass: a service that answered before may be restarting.
    fn may_return(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.options.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn url(&self, path: &str) -> Result<Url, ClientError> {
        self.base.join(path).map_err(|error| ClientError::Setup(format!("{path}: {error}")))
    }
}

fn decisive(verdict: &Verdict) -> String {
    verdict.decisive().map_or_else(String::new, |check| format!("{}: {}", check.name, check.detail))
}

/// 202 and 204 of draft 11; 302 and 303 of its predecessors.
fn is_not_yet(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT | StatusCode::FOUND | StatusCode::SEE_OTHER
    )
}

fn http_client(options: &Options) -> Result<reqwest::Client, ClientError> {
    // Whoever came first chose the provider; ours is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(EXCHANGE)
        .user_agent(concat!("tabellion/", env!("CARGO_PKG_VERSION")));
    if let Some(pem) = &options.extra_roots {
        let roots = reqwest::Certificate::from_pem_bundle(pem)
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        builder = roots.into_iter().fold(builder, |builder, root| builder.add_root_certificate(root));
    }
    if let Some(path) = &options.unix_socket {
        builder = builder.unix_socket(path.clone()).no_proxy();
    }
    builder.build().map_err(|error| ClientError::Setup(error.to_string()))
}
