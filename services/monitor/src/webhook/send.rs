//! Delivery to one receiver: the HTTP client, and one attempt.

use std::sync::Arc;
use std::time::Duration;

use client::https::{self, NoHttpClient};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use reqwest::Url;

use super::address::{NotPublic, PublicOnly, check_literal};
use super::queue::QueuedMessage;
use super::signing::{SharedSecret, WebhookKey, WebhookMessage};
use crate::limits::{WEBHOOK_CONNECT, WEBHOOK_EXCHANGE};

/// A webhook receiver, as configured.
#[derive(Debug)]
pub struct WebhookReceiver {
    /// The receiver's URL.
    pub url: String,
    /// Permits non-public addresses and plain HTTP.
    pub allow_private: bool,
    /// Adds an HMAC signature, for receivers that do not support Ed25519.
    pub secret: Option<SharedSecret>,
}

/// Errors in a receiver's configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The URL is malformed or not `http` or `https`.
    #[error("webhook {0}: not an HTTP URL")]
    NotAUrl(String),
    /// The URL contains credentials, which would be stored in files and logged.
    #[error("webhook {0}: a URL with a user name or password in it")]
    Credentials(String),
    /// Plain HTTP: the message could be read and altered in transit.
    #[error("webhook {0}: use https, or set allow_private for a receiver in your own network")]
    Plaintext(String),
    /// The URL's IP address is not public.
    #[error("webhook {url}: {why}")]
    Private {
        /// The receiver's URL.
        url: String,
        /// The rejected address.
        why: NotPublic,
    },
    /// The HTTP client cannot be created.
    #[error("webhooks: {0}")]
    Client(#[from] NoHttpClient),
}

/// A receiver with its HTTP client.
pub struct Sender {
    target: WebhookReceiver,
    url: Url,
    http: reqwest::Client,
}

/// Result of one delivery attempt.
pub enum DeliveryAttempt {
    /// The receiver accepted the message (2xx).
    Delivered,
    /// The receiver rejected this message; others may succeed.
    Refused {
        /// Description of the response.
        why: String,
    },
    /// The receiver is temporarily unavailable for all messages.
    Down {
        /// Description of the failure.
        why: String,
        /// The receiver's `Retry-After`.
        after: Option<Duration>,
    },
}

impl Sender {
    pub fn new(target: WebhookReceiver) -> Result<Self, SetupError> {
        let url = check(&target)?;
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
        let http = https::build(builder, url.scheme() == "https")?;
        Ok(Self { target, url, http })
    }

    pub fn url(&self) -> &str {
        &self.target.url
    }

    /// Signs the message and sends it once.
    pub async fn attempt(&self, key: &WebhookKey, pending: &QueuedMessage, now: u64) -> DeliveryAttempt {
        let message = WebhookMessage { id: &pending.id, timestamp: now, body: pending.body.as_bytes() };
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
            Err(error) => DeliveryAttempt::Down { why: in_words(&error), after: None },
        }
    }
}

/// Classifies a response: only 2xx is success; redirects are not followed and count as a rejection.
fn judge(status: StatusCode, headers: &HeaderMap) -> DeliveryAttempt {
    let why = format!("answered {status}");
    let busy = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    match (status.is_success(), busy) {
        (true, _) => DeliveryAttempt::Delivered,
        (_, true) => DeliveryAttempt::Down { why, after: client::retry_after(headers) },
        _ => DeliveryAttempt::Refused { why },
    }
}

fn check(target: &WebhookReceiver) -> Result<Url, SetupError> {
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

/// The innermost cause of an error is the most helpful.
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
