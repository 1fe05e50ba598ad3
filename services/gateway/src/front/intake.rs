//! Reads the body of a request: it must be declared as JSON, and is limited in size and time.

use std::net::IpAddr;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serving::content_coding::is_coded;

use super::refusal::RequestRefusal;
use crate::limits::BODY_TIME;
use crate::memory::{Exhausted, MESSAGES, Share};
use crate::upstream::fields;

/// Reads a message. While it is held, its bytes count against the memory budget, and against the part of this address
/// if one is given.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    address: Option<IpAddr>,
) -> Result<Bytes, RequestRefusal> {
    check_media(headers)?;
    let announced = fields::text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if announced.is_some_and(|length: u64| u64::try_from(limit).is_ok_and(|limit| length > limit)) {
        return Err(RequestRefusal::TooLong(limit));
    }
    let read = tokio::time::timeout(BODY_TIME, collected(body, limit, MESSAGES.share(address)));
    read.await.map_err(|_elapsed| RequestRefusal::TooSlow)?
}

async fn collected(mut body: Body, limit: usize, mut share: Share) -> Result<Bytes, RequestRefusal> {
    let mut text = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| RequestRefusal::Broken)?.into_data() else { continue };
        if text.len() + data.len() > limit {
            return Err(RequestRefusal::TooLong(limit));
        }
        share.resize(text.len() + data.len()).map_err(|Exhausted| RequestRefusal::NoRoom)?;
        text.extend_from_slice(&data);
    }
    Ok(share.attach(text.freeze()))
}

/// Checks that the body is declared as JSON in UTF-8, so that the upstream cannot read it as anything else.
fn check_media(headers: &HeaderMap) -> Result<(), RequestRefusal> {
    if is_coded(headers) {
        return Err(RequestRefusal::ContentCoding);
    }
    let mut parts = fields::text(headers, &CONTENT_TYPE).unwrap_or_default().split(';');
    if !parts.next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json")) {
        return Err(RequestRefusal::Media("Content-Type must be application/json"));
    }
    match parts.all(|parameter| is_harmless(parameter.trim())) {
        true => Ok(()),
        false => Err(RequestRefusal::Media("the charset must be utf-8")),
    }
}

fn is_harmless(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    }
}
