//! An approver's side of the listener: what `tabellion gateway approval` speaks.

use std::time::Duration;

use admission::approval::{ApprovalError, Reader};
use http::{StatusCode, header};
use reqwest::Response;
use scitt::SigningKey;
use serde::de::DeserializeOwned;
use url::Url;

use super::{Listed, Problem, Shown};
use crate::limits::{APPROVALS_TIMEOUT, MAX_APPROVALS_ANSWER};

/// Asks one gateway.
pub struct ApprovalsClient {
    http: reqwest::Client,
    origin: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL or the system's certificates cannot be used.
    #[error("{0}")]
    Setup(String),
    /// Nobody answers there.
    #[error("the gateway does not answer: {0}")]
    Unreachable(String),
    /// It refuses.
    #[error("{}", .1.detail)]
    Refused(u16, Problem),
    /// What it answers makes no sense.
    #[error("the gateway's answer cannot be read: {0}")]
    Nonsense(String),
    /// The key does not sign.
    #[error(transparent)]
    Unsigned(#[from] ApprovalError),
}

impl ApprovalsClient {
    /// A client of the listener at this URL.
    ///
    /// # Errors
    /// If the URL is none of HTTP, or there is no TLS.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let url = Url::parse(url).map_err(|error| ClientError::Setup(format!("{url}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            return Err(ClientError::Setup(format!("{url}: an http or https URL is needed")));
        }
        // Whoever came first chose the provider; ours is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(APPROVALS_TIMEOUT)
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self { http, origin: url.as_str().trim_end_matches('/').to_owned() })
    }

    /// The open questions that the holder of this key may answer.
    ///
    /// # Errors
    /// If the gateway does not answer, or refuses.
    pub async fn list(&self, key: &SigningKey, now: u64) -> Result<Listed, ClientError> {
        self.get("/approvals", key, now).await
    }

    /// One question.
    ///
    /// # Errors
    /// If the gateway does not answer, or refuses.
    pub async fn show(&self, id: &str, key: &SigningKey, now: u64) -> Result<Shown, ClientError> {
        self.get(&format!("/approvals/{id}"), key, now).await
    }

    /// Brings a signed answer.
    ///
    /// # Errors
    /// If the gateway does not answer, or refuses.
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
        let proof = Reader { origin: self.origin.clone(), at }.sign(key)?;
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
            let problem = jose::json::read_bytes(&body).unwrap_or_else(|_| Problem {
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
