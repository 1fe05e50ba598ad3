//! One receiver: its client, and one attempt.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use reqwest::Url;

use super::address::{NotPublic, PublicOnly, check_literal};
use super::queue::Pending;
use super::signing::{Message, SharedSecret, WebhookKey};
use crate::limits::{WEBHOOK_CONNECT, WEBHOOK_EXCHANGE};

/// Where to send alarms, as the operator says.
#[derive(Debug)]
pub struct Target {
    /// The receiver's URL.
    pub url: String,
    /// Whether it may be an address that is not public, and be reached without TLS.
    pub allow_private: bool,
    /// Signs with HMAC too, for receivers that know nothing else.
    pub secret: Option<SharedSecret>,
}

/// Why a target cannot be sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Not a URL.
    #[error("webhook {0}: not an HTTP URL")]
    NotAUrl(String),
    /// The URL would be kept in files and shown.
    #[error("webhook {0}: a URL with a user name or password in it")]
    Credentials(String),
    /// Readable and changeable on the way.
    #[error("webhook {0}: use https, or set allow_private for a receiver in your own network")]
    Plaintext(String),
    /// Not public.
    #[error("webhook {url}: {why}")]
    Private {
        /// The URL.
        url: String,
        /// The address.
        why: NotPublic,
    },
    /// There is no client to be had.
    #[error("webhooks: {0}")]
    Client(String),
}

/// A receiver that can be sent to.
pub struct Sender {
    target: Target,
    url: Url,
    http: reqwest::Client,
}

/// What came of one attempt.
pub enum Attempt {
    /// The receiver has it.
    Delivered,
    /// It does not want this one.
    Refused {
        /// In words.
        why: String,
    },
    /// It does not take any, for now.
    Down {
        /// In words.
        why: String,
        /// How long it asks to be left alone.
        after: Option<Duration>,
    },
}

impl Sender {
    pub fn new(target: Target) -> Result<Self, SetupError> {
        let url = check(&target)?;
        // Whoever came first chose the provider; ours is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(WEBHOOK_CONNECT)
            .timeout(WEBHOOK_EXCHANGE)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("tabellion-monitor/", env!("CARGO_PKG_VERSION")));
        if !target.allow_private {
            builder = builder.dns_resolver(Arc::new(PublicOnly));
        }
        let http = builder.build().map_err(|error| SetupError::Client(error.to_string()))?;
        Ok(Self { target, url, http })
    }

    pub fn url(&self) -> &str {
        &self.target.url
    }

    /// Signs and sends.
    pub async fn attempt(&self, key: &WebhookKey, pending: &Pending, now: u64) -> Attempt {
        let message = Message { id: &pending.id, timestamp: now, body: pending.body.as_bytes() };
        let shared = self.target.secret.as_ref().map(|secret| secret.sign(message));
        let signatures: Vec<String> = std::iter::once(key.sign(message)).chain(shared).collect();
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &pending.id)
            .header("webhook-timestamp", now)
            .header("webhook-signature", signatures.join(" "))
            .body(pending.body.clone());
        match request.send().await {
            Ok(answer) => judge(answer.status(), answer.headers()),
            Err(error) => Attempt::Down { why: in_words(&error), after: None },
        }
    }
}

/// Only 2xx is a yes; a redirect is none, and is not followed.
fn judge(status: StatusCode, headers: &HeaderMap) -> Attempt {
    let why = format!("answered {status}");
    let busy = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    match (status.is_success(), busy) {
        (true, _) => Attempt::Delivered,
        (_, true) => Attempt::Down { why, after: asked(headers) },
        _ => Attempt::Refused { why },
    }
}

fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn check(target: &Target) -> Result<Url, SetupError> {
    let shown = || target.url.clone();
    let url = Url::parse(&target.url).map_err(|_| SetupError::NotAUrl(shown()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SetupError::NotAUrl(shown()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SetupError::Credentials(url.host_str().unwrap_or_default().to_owned()));
    }
    if !target.allow_private {
        if url.scheme() != "https" {
            return Err(SetupError::Plaintext(shown()));
        }
        check_literal(&url).map_err(|why| SetupError::Private { url: shown(), why })?;
    }
    Ok(url)
}

/// The innermost reason is the one that helps.
fn in_words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match error.is_timeout() {
        true => format!("no answer in {} s", WEBHOOK_EXCHANGE.as_secs()),
        false => cause.to_string(),
    }
}
