//! The client of the approvals listener, which `tabellion gateway approval` uses.

use std::time::Duration;

use admission::approval::{ApprovalError, ReaderProof};
use client::https::{self, NoHttpClient};
use http::{StatusCode, header};
use reqwest::Response;
use scitt::SigningKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::{QuestionList, QuestionView};
use crate::limits::{APPROVALS_TIMEOUT, MAX_APPROVALS_ANSWER};

/// A client of one gateway's approvals listener.
pub struct ApprovalsClient {
    http: reqwest::Client,
    origin: String,
}

/// What the client reads of a refusal's problem details.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RefusalOfRequest {
    /// A fixed code, such as `no-question`.
    pub code: String,
    /// An explanation in words.
    pub detail: String,
}

/// Errors of the [`ApprovalsClient`].
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be used.
    #[error("{0}")]
    Setup(String),
    /// There is no HTTP client, for example without certificates for HTTPS.
    #[error(transparent)]
    NoHttpClient(#[from] NoHttpClient),
    /// The gateway does not answer.
    #[error("the gateway does not answer: {0}")]
    Unreachable(String),
    /// The gateway refuses the request, with this HTTP status.
    #[error("{}", .1.detail)]
    Refused(u16, RefusalOfRequest),
    /// The answer cannot be parsed, or is too long.
    #[error("the gateway's answer cannot be read: {0}")]
    Nonsense(String),
    /// The key cannot sign.
    #[error(transparent)]
    Unsigned(#[from] ApprovalError),
}

impl ApprovalsClient {
    /// A client of the listener at this URL.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the URL is not `http` or `https`; [`ClientError::NoHttpClient`] if there are no certificates for
    /// HTTPS.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let url = Url::parse(url).map_err(|error| ClientError::Setup(format!("{url}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            return Err(ClientError::Setup(format!("{url}: an http or https URL is needed")));
        }
        let builder = reqwest::Client::builder()
            .timeout(APPROVALS_TIMEOUT)
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none());
        let http = https::build(builder, url.scheme() == "https")?;
        Ok(Self { http, origin: url.as_str().trim_end_matches('/').to_owned() })
    }

    /// Returns the open questions that the holder of this key may answer. `now` is the time of the proof, in Unix
    /// seconds.
    ///
    /// # Errors
    /// [`ClientError`] if the gateway does not answer, or refuses.
    pub async fn list(&self, key: &SigningKey, now: u64) -> Result<QuestionList, ClientError> {
        self.get("/approvals", key, now).await
    }

    /// Returns one question. `now` is the time of the proof, in Unix seconds.
    ///
    /// # Errors
    /// [`ClientError`] if the gateway does not answer, or refuses.
    pub async fn show(&self, id: &str, key: &SigningKey, now: u64) -> Result<QuestionView, ClientError> {
        self.get(&format!("/approvals/{id}"), key, now).await
    }

    /// Sends a signed answer.
    ///
    /// # Errors
    /// [`ClientError`] if the gateway does not answer, or refuses.
    pub async fn answer(&self, id: &str, signed: String) -> Result<(), ClientError> {
        let request = self.http.post(format!("{}/approvals/{id}", self.origin));
        let response = request.header(header::CONTENT_TYPE, "application/jose").body(signed).send().await;
        read::<serde_json::Value>(response.map_err(unreachable)?).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &SigningKey,
        at: u64,
    ) -> Result<T, ClientError> {
        let proof = ReaderProof { origin: self.origin.clone(), at }.sign(key)?;
        let request = self.http.get(format!("{}{path}", self.origin)).bearer_auth(proof);
        read(request.send().await.map_err(unreachable)?).await
    }
}

async fn read<T: DeserializeOwned>(mut response: Response) -> Result<T, ClientError> {
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_APPROVALS_ANSWER {
            return Err(ClientError::Nonsense(format!("it is longer than {MAX_APPROVALS_ANSWER} bytes")));
        }
    }
    let nonsense = |error: jose::json::JsonError| ClientError::Nonsense(error.to_string());
    match status {
        StatusCode::OK => jose::json::read_bytes(&body).map_err(nonsense),
        _ => {
            let problem = jose::json::read_bytes(&body).unwrap_or_else(|_| RefusalOfRequest {
                code: "nonsense".to_owned(),
                detail: format!("the gateway answers {status}"),
            });
            Err(ClientError::Refused(status.as_u16(), problem))
        }
    }
}

fn unreachable(error: reqwest::Error) -> ClientError {
    let mut words = error.without_url().to_string();
    words.truncate(200);
    ClientError::Unreachable(words)
}
