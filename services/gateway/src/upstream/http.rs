//! An upstream that is reached over Streamable HTTP.
//!
//! Each request is sent once: no retries, no redirects (a redirect would send a call to a destination that was not
//! decided on), and no decompression. A client gets no redirect either, since it would follow it around the gateway. An
//! error says whether the request can have had an effect.
//!
//! Not here: the client's own token (`oauth`, mode B); the choice of headers that are forwarded (`front`).

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use client::https::{self, NoHttpClient};
use futures::{Stream, StreamExt, stream};
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use thiserror::Error;
use url::Url;

use super::{Exchange, Upstream, UpstreamAnswer, UpstreamError};
use crate::config::HttpServer;
use crate::limits::{
    CONNECT_TIME, MAX_LOGGED_LINE, UPSTREAM_IDLE, UPSTREAM_IDLE_CONNECTIONS, UPSTREAM_KEEP_ALIVE,
};
use crate::upstream::events::is_event_stream;
use crate::upstream::headers::from_upstream;

/// An MCP server over HTTP.
pub struct Http {
    client: reqwest::Client,
    url: Url,
    /// Headers that replace those of every request: the gateway's own credential (mode A), and the configured headers.
    own: HeaderMap,
    answer_time: Duration,
}

/// Reason why an HTTP upstream cannot be set up.
#[derive(Debug, Error)]
pub enum HttpError {
    /// A file that the configuration names cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The defect, in words.
        why: String,
    },
    /// A configured header has an invalid name or value.
    #[error("{0:?} is not a header that can be sent")]
    Header(String),
    /// The HTTP client cannot be built.
    #[error(transparent)]
    Client(#[from] NoHttpClient),
}

impl Http {
    /// Makes an upstream from its configuration. `answer_time` is the timeout for the response headers, and for each
    /// chunk of a body that is not an event stream: an event stream may be silent for as long as its tool works.
    ///
    /// # Errors
    /// An [`HttpError`] if a file or a header of the configuration cannot be used.
    pub fn new(server: &HttpServer, answer_time: Duration) -> Result<Self, HttpError> {
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIME)
            .pool_idle_timeout(UPSTREAM_IDLE)
            .pool_max_idle_per_host(UPSTREAM_IDLE_CONNECTIONS)
            .tcp_keepalive(UPSTREAM_KEEP_ALIVE)
            .referer(false);
        if let Some(path) = &server.ca_file {
            let unusable = |why: String| HttpError::File { path: path.clone(), why };
            let pem = std::fs::read(path).map_err(|e| unusable(e.to_string()))?;
            let roots = reqwest::Certificate::from_pem_bundle(&pem).map_err(|e| unusable(e.to_string()))?;
            builder = roots.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
        }
        let client = https::build(builder, server.url.scheme() == "https")?;
        Ok(Self { client, url: server.url.clone(), own: own_headers(server)?, answer_time })
    }

    fn request(&self, exchange: Exchange) -> reqwest::Request {
        let mut request = reqwest::Request::new(exchange.method, self.url.clone());
        let mut headers = exchange.headers;
        for name in self.own.keys() {
            headers.remove(name);
        }
        headers.extend(self.own.clone());
        *request.headers_mut() = headers;
        if !exchange.body.is_empty() {
            *request.body_mut() = Some(exchange.body.into());
        }
        request
    }

    /// The address of a redirect for the log: without its query, fragment, user name and password, which may be secret.
    /// `None` if it is not a URL.
    fn target(&self, location: &HeaderValue) -> Option<String> {
        let mut target = self.url.join(location.to_str().ok()?).ok()?;
        target.set_query(None);
        target.set_fragment(None);
        let _ = target.set_username("");
        let _ = target.set_password(None);
        Some(target.as_str().chars().take(MAX_LOGGED_LINE).collect())
    }
}

fn own_headers(server: &HttpServer) -> Result<HeaderMap, HttpError> {
    let mut own = HeaderMap::new();
    for (name, value) in &server.headers {
        let unusable = || HttpError::Header(name.clone());
        let value = HeaderValue::from_str(value).map_err(|_| unusable())?;
        own.append(HeaderName::try_from(name.as_str()).map_err(|_| unusable())?, value);
    }
    if let Some(path) = &server.token_file {
        let unusable = |why: String| HttpError::File { path: path.clone(), why };
        let token = std::fs::read_to_string(path).map_err(|e| unusable(e.to_string()))?;
        let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let mut value =
            value.map_err(|_| unusable("the token has letters that no header can hold".into()))?;
        value.set_sensitive(true);
        own.insert(AUTHORIZATION, value);
    }
    Ok(own)
}

#[async_trait]
impl Upstream for Http {
    async fn exchange(&self, exchange: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let answer = self.client.execute(self.request(exchange));
        let answer = tokio::time::timeout(self.answer_time, answer).await;
        let answer = answer.map_err(|_elapsed| UpstreamError::TimedOut)?.map_err(failed)?;
        let status = answer.status();
        let headers = from_upstream(answer.headers().clone())
            .map_err(|name| UpstreamError::Lost(format!("it has the header {name} twice")))?;
        if let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            let target = self.target(location).unwrap_or_else(|| "no URL".to_owned());
            return Err(UpstreamError::Lost(format!("it redirects ({status}) to {target}")));
        }
        let streams = is_event_stream(&headers);
        let body = answer.bytes_stream().map(|chunk| chunk.map_err(failed));
        let body = match streams {
            true => body.boxed(),
            false => timed(body, self.answer_time).boxed(),
        };
        Ok(UpstreamAnswer { status, headers, body, is_unsent: false })
    }
}

/// The body, which ends with [`UpstreamError::TimedOut`] after a pause that is too long.
fn timed(
    body: impl Stream<Item = Result<Bytes, UpstreamError>> + Send + 'static,
    pause: Duration,
) -> impl Stream<Item = Result<Bytes, UpstreamError>> + Send {
    stream::unfold(Some(Box::pin(body)), move |body| async move {
        let mut body = body?;
        match tokio::time::timeout(pause, body.next()).await {
            Ok(chunk) => chunk.map(|chunk| (chunk, Some(body))),
            Err(_elapsed) => Some((Err(UpstreamError::TimedOut), None)),
        }
    })
}

/// A failed connection had no effect; any other failure may have had one.
fn failed(error: reqwest::Error) -> UpstreamError {
    let connecting = error.is_connect();
    let why = causes(&error.without_url());
    match connecting {
        true => UpstreamError::NeverSent(why),
        false => UpstreamError::Lost(why),
    }
}

/// The messages of an error and of all its sources.
fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        words = format!("{words}: {deeper}");
        cause = deeper.source();
    }
    words
}
