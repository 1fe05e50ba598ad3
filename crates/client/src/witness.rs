//! Client for a witness (tlog-witness v1.0.0).
//!
//! [`WitnessClient::add_checkpoint`] sends one request; retries and the choice of the old size are up to the caller.
//! Clones share connections. Returned signature lines are parsed but not verified: `tlog::cosignature::verified` does
//! that, and lines of unknown keys are to be ignored.
//!
//! Not here: bastions, and `sign-subtree`.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use merkle::TreeSize;
use reqwest::{RequestBuilder, Url};
use thiserror::Error;
use tlog::checkpoint::Origin;
use tlog::note::{Note, SignatureLine};
use tlog::witness::{AddCheckpoint, SIZE_TYPE};
use tlog::{MAX_NOTE_BYTES, MAX_SIGNATURES};

use crate::{ClientError, http_client, retry, wire};

/// Maximum number of characters kept from a witness's error text.
const WORDS: usize = 200;

/// Settings of a [`WitnessClient`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Timeout of one HTTP exchange.
    pub time: Duration,
    /// Additional root certificates, in PEM.
    pub extra_roots: Option<Bytes>,
    /// Monitoring prefix, if it differs from the submission prefix.
    pub monitoring: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), extra_roots: None, monitoring: None }
    }
}

/// Errors of [`WitnessClient::add_checkpoint`], by HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddError {
    /// 409: the proof must start at this size, the largest that the witness has cosigned. A size larger than the log's
    /// own tree means that the log has lost signed data.
    #[error("the witness has seen the tree of size {0}")]
    Conflict(TreeSize),
    /// 422: the proof does not hold, or the witness has cosigned another root of this size.
    #[error("the witness finds the checkpoint inconsistent with the one that it cosigned before: {0}")]
    Unproven(String),
    /// 404: the log is not in the witness's list.
    #[error("the witness does not know this log: {0}")]
    UnknownLog(String),
    /// 400, 403 and other client errors: the same request will fail again.
    #[error("the witness refuses ({status}): {words}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The response text, truncated, in printable ASCII.
        words: String,
    },
    /// 429 or a server error: a retry may succeed.
    #[error("the witness is busy or down ({status}): {words}")]
    Busy {
        /// The HTTP status.
        status: StatusCode,
        /// The response text, truncated, in printable ASCII.
        words: String,
        /// The `Retry-After` header in seconds.
        retry_after: Option<Duration>,
    },
    /// No response was received.
    #[error("cannot reach the witness: {0}")]
    Unreachable(String),
    /// The response violates the protocol.
    #[error("the witness's answer cannot be used: {0}")]
    Nonsense(String),
}

impl AddError {
    /// The error's name, for metric labels.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::Unproven(_) => "unproven",
            Self::UnknownLog(_) => "unknown_log",
            Self::Refused { .. } => "refused",
            Self::Busy { .. } => "busy",
            Self::Unreachable(_) => "unreachable",
            Self::Nonsense(_) => "nonsense",
        }
    }
}

impl From<ClientError> for AddError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable(why) => Self::Unreachable(why),
            other => Self::Nonsense(other.to_string()),
        }
    }
}

/// A client of one witness. Clones share connections.
#[derive(Clone, Debug)]
pub struct WitnessClient {
    submission: Url,
    monitoring: Url,
    http: reqwest::Client,
    time: Duration,
}

impl WitnessClient {
    /// Creates a client of the witness with the submission prefix `url`. No request is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if a URL is not an HTTP URL, or the extra roots are not certificates;
    /// [`ClientError::NoHttpClient`] if there are no certificates for HTTPS.
    pub fn new(url: &str, options: Options) -> Result<Self, ClientError> {
        let Options { time, extra_roots, monitoring } = options;
        let setup = crate::Options { extra_roots, ..crate::Options::default() };
        let submission = wire::prefix(url)?;
        let monitoring = wire::prefix(monitoring.as_deref().unwrap_or(url))?;
        Ok(Self { http: http_client(&setup, &[&submission, &monitoring])?, submission, monitoring, time })
    }

    /// The submission prefix, with a trailing slash.
    pub fn url(&self) -> &Url {
        &self.submission
    }

    /// Requests a cosignature of a checkpoint. Returns the signature lines of the response, not verified.
    ///
    /// # Errors
    /// [`AddError`], by the status of the response.
    pub async fn add_checkpoint(&self, request: &AddCheckpoint) -> Result<Vec<SignatureLine>, AddError> {
        let url = below(&self.submission, "add-checkpoint")?;
        let post = self.http.post(url).header(CONTENT_TYPE, "text/plain; charset=utf-8");
        let answer = self.exchange(post.body(request.to_string())).await?;
        match answer.status {
            StatusCode::OK => read_lines(&answer.body),
            _ => Err(answer.into_error()),
        }
    }

    /// Fetches the newest checkpoint of a log that the witness has cosigned; not verified. `None` if there is none.
    ///
    /// # Errors
    /// [`AddError`] if the witness does not answer, or the response is not a note.
    pub async fn latest(&self, log: &Origin) -> Result<Option<Note>, AddError> {
        let url = below(&self.monitoring, &format!("{}/checkpoint", log.digest()))?;
        let answer = self.exchange(self.http.get(url)).await?;
        match answer.status {
            StatusCode::OK => Note::parse(&answer.body).map(Some).map_err(nonsense),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(answer.into_error()),
        }
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<WitnessResponse, AddError> {
        let response = request.timeout(self.time).send().await.map_err(wire::unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = wire::read_bounded(response, MAX_NOTE_BYTES).await?;
        Ok(WitnessResponse { status, headers, body })
    }
}

struct WitnessResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl WitnessResponse {
    fn into_error(self) -> AddError {
        let (status, words) = (self.status, self.words());
        match status {
            StatusCode::CONFLICT => self.size(),
            StatusCode::UNPROCESSABLE_ENTITY => AddError::Unproven(words),
            StatusCode::NOT_FOUND => AddError::UnknownLog(words),
            StatusCode::TOO_MANY_REQUESTS => self.busy(words),
            _ if status.is_server_error() => self.busy(words),
            _ => AddError::Refused { status, words },
        }
    }

    fn busy(&self, words: String) -> AddError {
        AddError::Busy { status: self.status, words, retry_after: retry::retry_after(&self.headers) }
    }

    /// Parses a 409: a decimal size and a newline, with the content type [`SIZE_TYPE`].
    fn size(&self) -> AddError {
        let typed = self.headers.get(CONTENT_TYPE).is_some_and(is_size_type);
        let size = std::str::from_utf8(&self.body).ok().filter(|_| typed).and_then(read_size);
        size.map_or_else(|| AddError::Nonsense("a 409 without a tree size".into()), AddError::Conflict)
    }

    /// The response text, safe to print.
    fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let plain = |c: char| if c.is_ascii_graphic() { c } else { ' ' };
        let words: String = text.trim().chars().take(WORDS).map(plain).collect();
        match words.is_empty() {
            true => "no reason given".into(),
            false => words,
        }
    }
}

fn below(prefix: &Url, path: &str) -> Result<Url, AddError> {
    prefix.join(path).map_err(|error| AddError::Nonsense(format!("{path}: {error}")))
}

/// Parses the signature lines of a 200; an empty body is an error.
fn read_lines(body: &[u8]) -> Result<Vec<SignatureLine>, AddError> {
    let text = std::str::from_utf8(body).map_err(nonsense)?;
    let lines: Result<Vec<SignatureLine>, _> = text.split_inclusive('\n').map(str::parse).collect();
    match lines {
        Ok(lines) if (1..=MAX_SIGNATURES).contains(&lines.len()) => Ok(lines),
        Ok(lines) => Err(AddError::Nonsense(format!("signature lines: {}", lines.len()))),
        Err(error) => Err(nonsense(error)),
    }
}

fn is_size_type(value: &HeaderValue) -> bool {
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(SIZE_TYPE.as_bytes())
}

/// Parses a decimal number without leading zeros or signs, followed by a newline.
fn read_size(text: &str) -> Option<TreeSize> {
    let size: u64 = text.strip_suffix('\n')?.parse().ok()?;
    (format!("{size}\n") == text).then_some(TreeSize::new(size))
}

fn nonsense(error: impl std::error::Error) -> AddError {
    AddError::Nonsense(error.to_string())
}
