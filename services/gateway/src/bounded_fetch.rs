//! Fetching of small documents that the configuration names by URL: issuers' keys, resource metadata, registries.

use client::https;
use http::header::CACHE_CONTROL;
use url::Url;

use crate::limits::JWKS_FETCH_TIME;

/// Reason why a document is not available.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// The HTTP client cannot be built.
    #[error("{0}")]
    Setup(String),
    /// The server gave no answer with status 200.
    #[error("{0}")]
    Unreachable(String),
    /// The document is longer than this number of bytes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
}

/// Builds an HTTP client for these URLs, without redirects. With `roots`, it trusts those certificates only.
pub fn http_client(urls: &[&Url], roots: Option<&[u8]>) -> Result<reqwest::Client, FetchError> {
    let setup = |error: reqwest::Error| FetchError::Setup(error.to_string());
    let mut builder =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(JWKS_FETCH_TIME);
    if let Some(pem) = roots {
        builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem).map_err(setup)?);
    }
    let uses_https = urls.iter().any(|url| url.scheme() == "https");
    https::build(builder, uses_https).map_err(|error| FetchError::Setup(error.to_string()))
}

/// Returns the body of an answer with status 200, at most `most` bytes.
pub async fn get_bounded(http: &reqwest::Client, url: &Url, most: usize) -> Result<Vec<u8>, FetchError> {
    read_bounded(http.get(url.clone()), most).await
}

/// Returns the body like [`get_bounded`], as the server has it now: a cache on the way asks the server.
pub async fn get_current(http: &reqwest::Client, url: &Url, most: usize) -> Result<Vec<u8>, FetchError> {
    read_bounded(http.get(url.clone()).header(CACHE_CONTROL, "no-cache"), most).await
}

async fn read_bounded(request: reqwest::RequestBuilder, most: usize) -> Result<Vec<u8>, FetchError> {
    let unreachable = |error: reqwest::Error| FetchError::Unreachable(error.without_url().to_string());
    let mut answer = request.send().await.map_err(unreachable)?;
    if answer.status() != http::StatusCode::OK {
        return Err(FetchError::Unreachable(format!("answered {}", answer.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > most {
            return Err(FetchError::TooLong(most));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
