//! JSON requests without retries, for the administrative interface of a service.

use http::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::Value;

use crate::wire::{HttpResponse, MAX_ANSWER_BYTES};
use crate::{Client, ClientError};

/// HTTP method of a [`Client::send_json`] request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `POST`.
    Post,
    /// `DELETE`.
    Delete,
}

impl Client {
    /// Sends JSON to a resource; returns the JSON response, or null if the body is empty.
    ///
    /// # Errors
    /// [`ClientError`] if the service refuses or cannot be reached.
    pub async fn send_json<T: Serialize>(
        &self,
        verb: Verb,
        path: &str,
        content: &T,
    ) -> Result<Value, ClientError> {
        let url = self.url(path)?;
        let body = serde_json::to_vec(content).map_err(|error| ClientError::Setup(error.to_string()))?;
        let request = match verb {
            Verb::Post => self.http.post(url),
            Verb::Delete => self.http.delete(url),
        };
        let request = self.authorized(request).header(CONTENT_TYPE, "application/json").body(body);
        let answer = HttpResponse::to(request, "application/json", MAX_ANSWER_BYTES).await?;
        if !answer.status.is_success() {
            return Err(answer.into_error());
        }
        match answer.body.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice(&answer.body)
                .map_err(|error| ClientError::Nonsense(format!("{path}: {error}"))),
        }
    }
}
