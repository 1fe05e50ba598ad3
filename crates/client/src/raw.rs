//! Single requests as they are given, without retries and without interpretation of the response, for programs that
//! test a service.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Body, Url};

use crate::wire::{HttpResponse, unreachable};
use crate::{Client, ClientError};

/// A request that is sent once and unchanged.
#[derive(Clone, Debug)]
pub struct RawRequest {
    /// The method.
    pub method: Method,
    /// The URL, on the origin of the client's service.
    pub url: Url,
    /// The value of `Accept`. A request without it cannot be sent: the HTTP library would add `*/*`.
    pub accept: &'static str,
    /// The value of `Content-Type`; `None` for a request without it.
    pub content_type: Option<&'static str>,
    /// The body. Several pieces are sent in chunks (RFC 9112, section 7.1), with [`pause`](Self::pause) between them.
    pub body: Vec<Bytes>,
    /// The pause between two pieces.
    pub pause: Duration,
}

impl Client {
    /// Sends a request once, and returns the response with a body of at most `most` bytes. Redirects are not followed.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the URL is on another origin, where the token must not be sent;
    /// [`ClientError::Unreachable`] without a response; [`ClientError::Nonsense`] if the body is larger.
    pub async fn exchange_once(&self, request: RawRequest, most: usize) -> Result<HttpResponse, ClientError> {
        if request.url.origin() != self.base().origin() {
            return Err(ClientError::Setup(format!("{} is not on {}", request.url, self.base())));
        }
        let mut builder = self.authorized(self.http.request(request.method, request.url));
        builder = builder.header(ACCEPT, request.accept);
        if let Some(content_type) = request.content_type {
            builder = builder.header(CONTENT_TYPE, content_type);
        }
        let builder = match request.body.len() {
            0 => builder,
            1 => builder.body(request.body.into_iter().next().unwrap_or_default()),
            _ => builder.body(in_pieces(request.body, request.pause)),
        };
        HttpResponse::within(builder.send().await.map_err(unreachable)?, most).await
    }
}

fn in_pieces(pieces: Vec<Bytes>, pause: Duration) -> Body {
    let pieces = futures::stream::iter(pieces.into_iter().enumerate());
    Body::wrap_stream(pieces.then(move |(number, piece)| async move {
        if number > 0 {
            tokio::time::sleep(pause).await;
        }
        Ok::<_, std::io::Error>(piece)
    }))
}
