//! Until calls are decided: none is served.

use async_trait::async_trait;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::StatusCode;

use crate::front::{Handlers, Inbound, Late, Opening, Response};
use crate::relay::Passing;
use admission::principal::Caller;

/// Decides nothing, and so lets nothing through that has to be decided.
pub struct Undecided;

#[async_trait]
impl Handlers for Undecided {
    async fn tools_call(&self, _: Inbound) -> Response {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }

    async fn carrier(&self, _: Inbound) -> Response {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }

    async fn amend(&self, _: Inbound) -> Response {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }

    async fn gated(&self, _: Inbound) -> Response {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }

    fn gates(&self, _: &str) -> bool {
        false
    }

    async fn answered(&self, _: &Inbound) -> bool {
        false
    }

    async fn notified(&self, _: &Inbound) -> bool {
        false
    }

    fn advertise(&self, _: &Opening, message: Bytes) -> Bytes {
        message
    }

    async fn late(&self, _: Late<'_>) -> Passing {
        Passing::Untouched
    }

    async fn ended(&self, _: &Caller) {}
}
