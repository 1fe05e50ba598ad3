//! Client for SCRAPI over HTTP (draft-ietf-scitt-scrapi-11).
//!
//! A [`Client`] registers statements, polls and fetches; [`Client::register`] returns verified receipts only. Services
//! that implement older drafts are supported: 302 and 303 mean "keep polling", the `Location` may change at the end,
//! and a key may be in an array of one. The module [`witness`] has a client of the tlog-witness protocol, `tlog` one
//! for tiles.
//!
//! Not here: trust decisions (`verifier::TrustStore`), and persistence.

mod admin;
mod batch;
mod evaluate;
mod events;
pub mod https;
mod multipart;
mod raw;
mod retry;
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
use scitt::{KeySet, Problem, PublicKey, SignedStatement, media};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use verifier::{StatementVerdict, TrustStore};

pub use admin::Verb;
pub use batch::{BATCH_STATEMENTS, BatchMessage};
pub use evaluate::{EvaluatedViolation, Evaluation};
pub use events::{Begin, EntryEvent, Events};
pub use raw::RawRequest;
pub use retry::retry_after;
pub use wire::HttpResponse;

use https::NoHttpClient;
use multipart::RequestBody;
use retry::Backoff;
use wire::{EVERY_TYPE, MAX_ANSWER_BYTES};

/// Default timeout of one HTTP exchange.
pub const EXCHANGE: Duration = Duration::from_secs(30);

/// Problem code of a log that is halted until its operator acts.
const HALTED: &str = "log-halted";
/// Problem code for damaged data in the service's storage.
const DAMAGED: &str = "database-damaged";

/// Errors of a client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// 404: no such entry or key, or its registration failed.
    #[error("{0}")]
    NotFound(Box<Problem>),
    /// The service refuses the request; a retry will not help.
    #[error("{problem}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The problem details of the response.
        problem: Box<Problem>,
    },
    /// 429 or a server error: the patience is used up, or waiting is useless, because the log is halted and its
    /// operator must act.
    #[error("{problem}")]
    TryAgain {
        /// The HTTP status.
        status: StatusCode,
        /// The problem details of the response.
        problem: Box<Problem>,
    },
    /// No response was received.
    #[error("cannot reach the service: {0}")]
    Unreachable(String),
    /// The registration was accepted and is still in progress; poll this URL.
    #[error("still being registered: {0}")]
    StillRunning(Url),
    /// The response violates the protocol.
    #[error("the service's answer is invalid: {0}")]
    Nonsense(String),
    /// The received receipt does not verify.
    #[error("the receipt does not verify: {}", decisive(.0))]
    Unverified(Box<StatementVerdict>),
    /// There is no HTTP client, for example without certificates for HTTPS.
    #[error(transparent)]
    NoHttpClient(#[from] NoHttpClient),
    /// A URL or a setting of the client cannot be used.
    #[error("{0}")]
    Setup(String),
}

impl ClientError {
    /// Returns `true` if the service reports damaged data in its storage (`database-damaged`).
    pub fn is_damage(&self) -> bool {
        self.has_code(DAMAGED)
    }

    /// Returns `true` if retries are useless until an operator acts, despite a retryable status.
    fn is_lasting(&self) -> bool {
        self.has_code(HALTED) || self.has_code(DAMAGED)
    }

    fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::TryAgain { problem, .. } if problem.get_code() == Some(code))
    }
}

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Total time for retries and polling, including the exchanges. A service that never answered is not retried.
    pub patience: Duration,
    /// Timeout of one HTTP exchange.
    pub exchange: Duration,
    /// Additional root certificates, in PEM.
    pub extra_roots: Option<Bytes>,
    /// Bearer token for the `Authorization` header.
    pub token: Option<String>,
    /// Unix socket to connect to; the URL's host and port are then not used for the connection.
    pub unix_socket: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            exchange: EXCHANGE,
            extra_roots: None,
            token: None,
            unix_socket: None,
        }
    }
}

/// A registered statement with its verified receipt.
#[derive(Clone, Debug)]
pub struct RegisteredStatement {
    /// URL for fetching fresh receipts of the entry.
    pub location: Url,
    /// The receipt as received.
    pub receipt: Bytes,
    /// The verifier's verdict on the receipt.
    pub verdict: StatementVerdict,
}

/// The answer to a statement that was posted.
#[derive(Debug)]
pub enum Posted {
    /// The statement is registered.
    Registered {
        /// URL for fetching fresh receipts of the entry.
        location: Url,
        /// The unverified receipt.
        receipt: Bytes,
    },
    /// The registration is in progress; see [`Client::wait_for_receipt`].
    Accepted(RunningRegistration),
}

/// A registration that the service has accepted and not finished yet.
#[derive(Debug)]
pub struct RunningRegistration(Polled);

/// A client of one transparency service.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
    options: Options,
    /// `true` once any response was received; only then are connection errors retried.
    reached: Arc<AtomicBool>,
}

impl Client {
    /// Creates a client of the service at `base`.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if `base` is not an HTTP URL, or the extra roots are not certificates;
    /// [`ClientError::NoHttpClient`] if there are no certificates for HTTPS.
    pub fn new(base: &str, options: Options) -> Result<Self, ClientError> {
        let base = wire::prefix(base)?;
        Ok(Self { http: http_client(&options, &[&base])?, base, options, reached: Arc::default() })
    }

    /// The service's base URL, with a trailing slash.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Registers a statement, waits for its receipt and verifies it against `trust` at `now` (Unix seconds).
    ///
    /// Idempotent: a repeated registration of a statement returns the same entry.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses, the patience is used up, or the receipt does not verify.
    pub async fn register(
        &self,
        statement: &SignedStatement,
        trust: &TrustStore,
        now: u64,
    ) -> Result<RegisteredStatement, ClientError> {
        self.register_message(statement, statement.bytes(), trust, now).await
    }

    /// Like [`register`](Self::register), for a statement with additional unprotected headers: `message` is the
    /// encoding to send, including certificates.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub async fn register_message(
        &self,
        statement: &SignedStatement,
        message: &Bytes,
        trust: &TrustStore,
        now: u64,
    ) -> Result<RegisteredStatement, ClientError> {
        let (location, receipt) = self.submit(message).await?;
        self.verified(statement, location, receipt, trust, now)
    }

    /// Like [`register_message`](Self::register_message), for a statement with a detached payload: the service checks
    /// the signature over `payload`, and stores it if its policy says so.
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
    ) -> Result<RegisteredStatement, ClientError> {
        let (location, receipt) = self.send(&RequestBody::form(message, payload)?).await?;
        self.verified(statement, location, receipt, trust, now)
    }

    fn verified(
        &self,
        statement: &SignedStatement,
        location: Url,
        receipt: Bytes,
        trust: &TrustStore,
        now: u64,
    ) -> Result<RegisteredStatement, ClientError> {
        let verdict = verifier::verify_receipt(statement, &receipt, trust, now);
        if !verdict.is_verified() {
            return Err(ClientError::Unverified(Box::new(verdict)));
        }
        Ok(RegisteredStatement { location, receipt, verdict })
    }

    /// Registers a statement and waits for its receipt; returns the location and the unverified receipt.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses or the patience is used up.
    pub async fn submit(&self, message: &Bytes) -> Result<(Url, Bytes), ClientError> {
        self.send(&RequestBody::statement(message)).await
    }

    async fn send(&self, body: &RequestBody) -> Result<(Url, Bytes), ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        match self.post_statement(body, &mut backoff).await? {
            Posted::Registered { location, receipt } => Ok((location, receipt)),
            Posted::Accepted(RunningRegistration(polled)) => self.poll(polled, &mut backoff).await,
        }
    }

    /// Posts a statement and does not wait for its registration. For callers with their own queue: several statements can
    /// be registered at once.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses or the patience is used up.
    pub async fn post(&self, message: &Bytes) -> Result<Posted, ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        self.post_statement(&RequestBody::statement(message), &mut backoff).await
    }

    /// Waits for the receipt of an accepted statement; returns the location and the unverified receipt.
    ///
    /// # Errors
    /// [`ClientError::StillRunning`] if the patience is used up, [`ClientError::NotFound`] if the registration failed.
    pub async fn wait_for_receipt(&self, running: RunningRegistration) -> Result<(Url, Bytes), ClientError> {
        self.poll(running.0, &mut Backoff::within(self.options.patience)).await
    }

    async fn post_statement(&self, body: &RequestBody, backoff: &mut Backoff) -> Result<Posted, ClientError> {
        let url = self.url("entries")?;
        let answer = self.post_until_taken(&url, body, (media::COSE, RECEIPT_BYTES), backoff).await?;
        let location = answer.location().ok_or_else(|| ClientError::Nonsense("no Location".into()))?;
        if answer.status == StatusCode::CREATED && !answer.body.is_empty() {
            return Ok(Posted::Registered { location, receipt: answer.body });
        }
        let (location, retry_after) = (self.own(location)?, answer.retry_after());
        Ok(Posted::Accepted(RunningRegistration(Polled { location, retry_after, accepted: true })))
    }

    /// Fetches a fresh receipt for an entry.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is no such entry, [`ClientError::StillRunning`] if it is still being
    /// registered.
    pub async fn receipt(&self, entry: &EntryDigest) -> Result<Bytes, ClientError> {
        self.receipt_named(&entry.to_string()).await
    }

    /// Fetches a fresh receipt for an entry by the service's own ID.
    ///
    /// # Errors
    /// As [`receipt`](Self::receipt).
    pub async fn receipt_named(&self, entry: &str) -> Result<Bytes, ClientError> {
        let mut backoff = Backoff::within(self.options.patience);
        let location = self.url(&format!("entries/{entry}"))?;
        let unanswered = Polled { location, retry_after: None, accepted: false };
        let (_, receipt) = self.poll(unanswered, &mut backoff).await?;
        Ok(receipt)
    }

    /// Fetches the receipt of the tree that the entry's batch made. Its time is that of the registration, while the time of
    /// a fresh receipt is that of the newest tree. `None` if the service does not tell that tree, or did not sign it.
    ///
    /// # Errors
    /// If the service cannot be reached, or asks to retry later.
    pub async fn batch_receipt(&self, entry: &EntryDigest) -> Result<Option<Bytes>, ClientError> {
        let registered = if_served(self.json(&format!("v1/entries/{entry}")).await)?;
        let Some(RegisteredEntry { index, tree_size_committed: Some(size) }) = registered else {
            return Ok(None);
        };
        let path = format!("v1/proof/inclusion?index={index}&size={size}");
        if_served(self.bytes_as(&path, media::RECEIPT).await)
    }

    /// Fetches the receipt that dates the registration of a statement best: that of its [batch](Self::batch_receipt) if
    /// `trust` verifies it at `now` (Unix seconds), else a fresh one, which is not verified. A receipt of a batch does not
    /// verify, for example, if the log's key of that time was stolen later.
    ///
    /// # Errors
    /// As [`receipt`](Self::receipt).
    pub async fn dated_receipt(
        &self,
        statement: &SignedStatement,
        trust: &TrustStore,
        now: u64,
    ) -> Result<Bytes, ClientError> {
        let entry = statement.digest();
        let is_verified =
            |receipt: &Bytes| verifier::verify_receipt(statement, receipt, trust, now).is_verified();
        match self.batch_receipt(&entry).await?.filter(is_verified) {
            Some(receipt) => Ok(receipt),
            None => self.receipt(&entry).await,
        }
    }

    /// Fetches the statement of an entry and checks its digest.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is no such entry, [`ClientError::Nonsense`] if the response is another
    /// statement.
    pub async fn statement(&self, entry: &EntryDigest) -> Result<SignedStatement, ClientError> {
        let body = self.get(&format!("v1/entries/{entry}/statement"), media::COSE).await?.body;
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

    /// Fetches the statement that published the registration policy in force; not verified.
    ///
    /// # Errors
    /// If the service has no policy, or the response is not a statement.
    pub async fn policy(&self) -> Result<SignedStatement, ClientError> {
        let body = self.get("v1/policy", media::COSE).await?.body;
        SignedStatement::parse(body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }

    /// Fetches the keys that the service publishes. They are not authenticated by this.
    ///
    /// # Errors
    /// If the response is not a COSE_KeySet.
    pub async fn keys(&self) -> Result<KeySet, ClientError> {
        let body = self.get(".well-known/scitt-keys", media::CBOR).await?.body;
        KeySet::parse(&body).map_err(|error| ClientError::Nonsense(error.to_string()))
    }

    /// Fetches a key by its `kid`; an array of one key, as in older drafts, is accepted.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is no such key.
    pub async fn key(&self, kid: &[u8]) -> Result<PublicKey, ClientError> {
        let name = data_encoding::BASE64URL_NOPAD.encode(kid);
        let body = self.get(&format!(".well-known/scitt-keys/{name}"), media::CBOR).await?.body;
        PublicKey::from_cose_key(&body)
            .ok()
            .or_else(|| Some(KeySet::parse(&body).ok()?.keys().first()?.key.clone()))
            .ok_or_else(|| ClientError::Nonsense("not a COSE_Key".into()))
    }

    /// Fetches a JSON resource.
    ///
    /// # Errors
    /// If the resource does not exist, or does not parse as `T`.
    pub async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let body = self.get(path, "application/json").await?.body;
        serde_json::from_slice(&body).map_err(|error| ClientError::Nonsense(format!("{path}: {error}")))
    }

    /// Fetches a resource as bytes, such as a tile or a checkpoint.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the resource does not exist.
    pub async fn bytes(&self, path: &str) -> Result<Bytes, ClientError> {
        self.bytes_as(path, EVERY_TYPE).await
    }

    /// Fetches a resource in one of its media types, such as a proof as a receipt or as a tlog-proof.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if the resource does not exist.
    pub async fn bytes_as(&self, path: &str, media_type: &'static str) -> Result<Bytes, ClientError> {
        Ok(self.get(path, media_type).await?.body)
    }

    /// Fetches one page of a JSON resource; returns it with the path of the next page, if any.
    ///
    /// # Errors
    /// If the resource does not exist, or does not parse as `T`.
    pub async fn page<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Option<String>), ClientError> {
        let answer = self.get(path, "application/json").await?;
        let page = serde_json::from_slice(&answer.body)
            .map_err(|error| ClientError::Nonsense(format!("{path}: {error}")))?;
        Ok((page, answer.next()))
    }

    async fn post_until_taken(
        &self,
        url: &Url,
        body: &RequestBody,
        (accept, most): (&'static str, usize),
        backoff: &mut Backoff,
    ) -> Result<HttpResponse, ClientError> {
        loop {
            let request = self.authorized(self.http.post(url.clone()));
            let request = request.header(CONTENT_TYPE, &body.content_type).body(body.bytes.clone());
            match self.mark_reached(HttpResponse::to(request, accept, most).await) {
                Ok(answer) if answer.status.is_success() || is_not_yet(answer.status) => return Ok(answer),
                answer => self.wait_or_fail(answer, backoff).await?,
            }
        }
    }

    async fn poll(&self, mut polled: Polled, backoff: &mut Backoff) -> Result<(Url, Bytes), ClientError> {
        let mut refused = None;
        let mut first = polled.retry_after.is_none();
        loop {
            if !std::mem::take(&mut first) {
                let Some(wait) = backoff.next(polled.retry_after) else {
                    return Err(polled.give_up(refused));
                };
                tokio::time::sleep(wait).await;
            }
            let answer = self.exchange(polled.location.clone(), media::COSE, RECEIPT_BYTES).await;
            match answer {
                Ok(answer) if answer.status == StatusCode::OK => {
                    let answer = answer.into_resource(media::COSE)?;
                    return Ok((answer.location().unwrap_or(polled.location), answer.body));
                }
                Ok(answer) if is_not_yet(answer.status) => {
                    let location = answer.location().map(|location| self.own(location)).transpose()?;
                    polled = Polled {
                        location: location.unwrap_or(polled.location),
                        retry_after: answer.retry_after(),
                        accepted: true,
                    };
                }
                Ok(answer) if answer.is_transient() => {
                    polled.retry_after = answer.retry_after();
                    refused = Some(answer.into_error());
                }
                Ok(answer) => return Err(answer.into_error()),
                Err(error @ ClientError::Unreachable(_)) if self.may_return() => {
                    polled.retry_after = None;
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn get(&self, path: &str, accept: &'static str) -> Result<HttpResponse, ClientError> {
        let url = self.url(path)?;
        let mut backoff = Backoff::within(self.options.patience);
        loop {
            match self.exchange(url.clone(), accept, MAX_ANSWER_BYTES).await {
                Ok(answer) if answer.status.is_success() => return answer.into_resource(accept),
                answer => self.wait_or_fail(answer, &mut backoff).await?,
            }
        }
    }

    /// Waits before a retry; fails if a retry is useless or the patience is used up.
    async fn wait_or_fail(
        &self,
        answer: Result<HttpResponse, ClientError>,
        backoff: &mut Backoff,
    ) -> Result<(), ClientError> {
        let (retry_after, error) = match answer {
            Ok(answer) if answer.is_transient() => (answer.retry_after(), answer.into_error()),
            Ok(answer) => return Err(answer.into_error()),
            Err(error @ ClientError::Unreachable(_)) if self.may_return() => (None, error),
            Err(error) => return Err(error),
        };
        if error.is_lasting() {
            return Err(error);
        }
        let Some(wait) = backoff.next(retry_after) else { return Err(error) };
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn exchange(
        &self,
        url: Url,
        accept: &'static str,
        most: usize,
    ) -> Result<HttpResponse, ClientError> {
        self.mark_reached(HttpResponse::to(self.authorized(self.http.get(url)), accept, most).await)
    }

    /// The URL to poll. Requests and the token go to the configured service only: a `Location` with another origin, as
    /// from a service behind a proxy, is mapped to the same entry at `base`.
    fn own(&self, location: Url) -> Result<Url, ClientError> {
        if location.origin() == self.base.origin() {
            return Ok(location);
        }
        match location.path().rsplit_once("/entries/") {
            Some((_, entry)) if !entry.is_empty() => self.url(&format!("entries/{entry}")),
            _ => Err(ClientError::Nonsense(format!(
                "it redirects to {location}, which is not below {}",
                self.base
            ))),
        }
    }

    fn patience(&self) -> Duration {
        self.options.patience
    }

    fn mark_reached(&self, answer: Result<HttpResponse, ClientError>) -> Result<HttpResponse, ClientError> {
        if answer.is_ok() {
            self.reached.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Returns `true` if a connection error may be temporary: a service that answered before may be restarting.
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

/// The position of an entry, in the JSON of `GET /v1/entries/{id}`.
#[derive(Deserialize)]
struct RegisteredEntry {
    index: u64,
    /// Size of the tree that the entry's batch made; services before this field do not tell it.
    tree_size_committed: Option<u64>,
}

/// What is known about a receipt that is polled for.
#[derive(Debug)]
struct Polled {
    location: Url,
    /// The wait of the last response.
    retry_after: Option<Duration>,
    /// `true` once the service has said that the registration is in progress.
    accepted: bool,
}

impl Polled {
    /// The error when the patience is used up. That a statement is being registered is said only if the service said so;
    /// else the last failure is the error.
    fn give_up(self, refused: Option<ClientError>) -> ClientError {
        match refused {
            Some(error) if !self.accepted => error,
            _ => ClientError::StillRunning(self.location),
        }
    }
}

/// Returns `None` for a resource that the service does not have. Some services answer unknown paths with a page (200).
fn if_served<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(resource) => Ok(Some(resource)),
        Err(ClientError::NotFound(_) | ClientError::Refused { .. } | ClientError::Nonsense(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn decisive(verdict: &StatementVerdict) -> String {
    verdict.decisive().map_or_else(String::new, |check| format!("{}: {}", check.name, check.detail))
}

/// "Not yet": 202 and 204 of draft 11; 302 and 303 of earlier drafts.
fn is_not_yet(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT | StatusCode::FOUND | StatusCode::SEE_OTHER
    )
}

/// Builds the HTTP client for these URLs.
fn http_client(options: &Options, urls: &[&Url]) -> Result<reqwest::Client, ClientError> {
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(options.exchange)
        .user_agent(concat!("tabellion/", env!("CARGO_PKG_VERSION")));
    if let Some(pem) = &options.extra_roots {
        let roots = reqwest::Certificate::from_pem_bundle(pem)
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        builder = roots.into_iter().fold(builder, |builder, root| builder.add_root_certificate(root));
    }
    if let Some(path) = &options.unix_socket {
        builder = builder.unix_socket(path.clone()).no_proxy();
    }
    let uses_https = urls.iter().any(|url| url.scheme() == "https");
    Ok(https::build(builder, uses_https)?)
}
