//! Request bodies with statements: a single one, one with its detached payload, or a batch.
//!
//! - `application/cose` and its variants: the body is the statement (SCRAPI -11, 2.3).
//! - `multipart/form-data` with the parts `statement` and `payload`, once each: the statement is detached, and its
//!   signature covers the payload.
//! - `multipart/mixed`: a batch; each part is a statement that contains its own payload.
//!
//! A body is accepted or refused as a whole, before anything is registered. The content type of the request only
//! determines how a body is parsed; the type of a payload is in its statement.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;

use crate::edge::body::ReceivedBody;
use crate::edge::media;
use crate::edge::multipart::{self, BodyPart, Delimiter, MultipartDefect, MultipartError};
use crate::edge::problem::Problem;
use crate::edge::state::EdgeState;
use crate::limits::BATCH_STATEMENTS;

/// A statement and its detached payload, extracted from a request.
pub struct SubmittedStatement {
    /// Bytes of a COSE_Sign1, not parsed yet.
    pub statement: Bytes,
    /// The bytes that a detached statement's signature covers.
    pub payload: Option<Bytes>,
    _body: ReceivedBody,
}

impl<S> FromRequest<S> for SubmittedStatement
where
    S: AsRef<EdgeState> + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match media::essence(request.headers()).as_deref() {
            Some(media::FORM) => form(request, state.as_ref()).await,
            _ if media::is_statement(request.headers()) => {
                let body = ReceivedBody::from_request(request, state).await?;
                Ok(Self { statement: body.bytes.clone(), payload: None, _body: body })
            }
            _ => Err(wrong_type(
                "A Signed Statement is sent as application/cose or application/scitt-statement+cose; \
                 with a detached payload, as multipart/form-data with the parts statement and payload",
            )),
        }
    }
}

async fn form(request: Request, edge: &EdgeState) -> Result<SubmittedStatement, Problem> {
    let delimiter = Delimiter::of(request.headers())?;
    let largest = edge.statement_bytes();
    let body = ReceivedBody::read(request, edge, edge.form_bytes()).await?;
    let (mut statement, mut payload) = (None, None);
    for part in multipart::parts(&body.bytes, &delimiter, 2)? {
        let offset = part.offset;
        let place = match part.name()? {
            "statement" => &mut statement,
            "payload" => &mut payload,
            _ => return Err(unreadable(MultipartDefect::UnknownName, offset)),
        };
        if place.replace(fitting(part, largest)?).is_some() {
            return Err(unreadable(MultipartDefect::NameTwice, offset));
        }
    }
    let statement = statement.ok_or_else(|| unreadable(MultipartDefect::NoStatement, 0))?;
    let payload = payload.ok_or_else(payload_missing)?;
    if !statement.media_type().is_none_or(media::is_statement_in_form) {
        return Err(wrong_type("The part statement is sent as application/cose"));
    }
    Ok(SubmittedStatement { statement: copied(&statement), payload: Some(payload.body), _body: body })
}

/// A batch of statements, extracted from a request.
pub struct SubmittedBatch {
    /// The statements in the order of their parts, or the problem of a part that is not registered.
    pub statements: Vec<Result<Bytes, Problem>>,
    _body: ReceivedBody,
}

impl<S> FromRequest<S> for SubmittedBatch
where
    S: AsRef<EdgeState> + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if media::essence(request.headers()).as_deref() != Some(media::MIXED) {
            return Err(wrong_type("A batch is sent as multipart/mixed"));
        }
        let edge = state.as_ref();
        let delimiter = Delimiter::of(request.headers())?;
        let largest = edge.statement_bytes();
        let mut body = ReceivedBody::read(request, edge, edge.batch_bytes()).await?;
        let parts = multipart::parts(&body.bytes, &delimiter, BATCH_STATEMENTS)?;
        let statements = parts.into_iter().map(|part| in_batch(part, largest)).collect();
        body.forget_bytes();
        Ok(Self { statements, _body: body })
    }
}

fn in_batch(part: BodyPart, most: usize) -> Result<Bytes, Problem> {
    if !part.media_type().is_some_and(media::is_statement_in_batch) {
        return Err(wrong_type(
            "Each part of a batch is sent as application/cose or application/scitt-statement+cose; \
             a statement with a detached payload is sent alone, to /entries",
        ));
    }
    fitting(part, most).map(|part| copied(&part))
}

fn fitting(part: BodyPart, most: usize) -> Result<BodyPart, Problem> {
    match part.body.len() <= most {
        true => Ok(part),
        false => {
            let detail = format!("A part of the request body is larger than {most} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Content Too Large", detail))
        }
    }
}

/// Copies a part's body. A statement may wait in a queue for longer than its request lives, and a slice would keep the
/// whole request body.
fn copied(part: &BodyPart) -> Bytes {
    Bytes::copy_from_slice(&part.body)
}

fn unreadable(what: MultipartDefect, offset: usize) -> Problem {
    MultipartError { offset: Some(offset), what }.into()
}

fn wrong_type(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "Unsupported Media Type", detail)
}

fn payload_missing() -> Problem {
    let detail = "Signed Statement payload must be present: the form has no part named payload";
    Problem::new(StatusCode::BAD_REQUEST, "payload-missing", "Payload Missing", detail)
}
