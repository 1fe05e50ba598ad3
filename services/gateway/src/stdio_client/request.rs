//! Messages as requests of Streamable HTTP, with the headers of the client's session.

use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};

use crate::frame::reply::Reply;
use crate::frame::{Frame, mirrored_value};
use crate::mcp::MatchesById;
use crate::upstream::request::{LAST_EVENT, METHOD, NAME, SESSION, VERSION, mirrored_member};
use crate::upstream::text::meta;

/// The client's session: what `initialize` and its answer agreed on.
#[derive(Debug, Default)]
pub struct McpSession {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl McpSession {
    /// Returns whether `initialize` has agreed on a session or a revision.
    pub const fn is_open(&self) -> bool {
        self.id.is_some() || self.version.is_some()
    }

    /// Returns whether the server has given the session an id: then it answers 404 once it has lost the session.
    pub const fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Takes the session's id from the answer to `initialize`.
    pub fn opened(&mut self, headers: &HeaderMap) {
        self.id = headers.get(SESSION).cloned();
    }

    /// Takes the protocol revision from the message that answers `initialize`.
    pub fn negotiated(&mut self, message: &bytes::Bytes) {
        let version = Reply::parse(message.clone()).ok();
        let version = version.and_then(|reply| reply.result_string_at(&["protocolVersion"]));
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) {
            self.version = Some(version);
        }
    }

    /// Returns the request that carries a message.
    pub fn post(&self, route: &str, message: &Frame) -> Request<Body> {
        let mut request = self.request(Method::POST, route, Body::from(message.text().clone()));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(version) = message.meta_string(meta::PROTOCOL_VERSION) {
            let member = message.method().and_then(mirrored_member);
            let named = member.and_then(|member| message.param_string(member));
            set(headers, VERSION, Some(&version));
            set(headers, METHOD, message.method());
            set(headers, NAME, named.as_deref());
        }
        request
    }

    /// Returns the request for a stream: the one of this event, from there on, or that of the server's own messages. `None`
    /// without a session.
    pub fn stream(&self, route: &str, last_event: Option<HeaderValue>) -> Option<Request<Body>> {
        self.id.as_ref()?;
        let mut request = self.request(Method::GET, route, Body::empty());
        if let Some(event) = last_event {
            request.headers_mut().insert(LAST_EVENT, event);
            request.extensions_mut().insert(MatchesById);
        }
        Some(request)
    }

    /// Returns the request that ends the session; `None` without one.
    pub fn end(&mut self, route: &str) -> Option<Request<Body>> {
        let request = self.id.as_ref().map(|_| self.request(Method::DELETE, route, Body::empty()));
        self.id = None;
        request
    }

    fn request(&self, method: Method, route: &str, body: Body) -> Request<Body> {
        let accepted = match method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        if let Ok(uri) = route.parse() {
            *request.uri_mut() = uri;
        }
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        headers.extend(self.id.clone().map(|id| (SESSION, id)));
        headers.extend(self.version.clone().map(|version| (VERSION, version)));
        request
    }
}

/// Returns whether a message belongs to the modern era, by its own members.
pub fn is_modern(message: &Frame) -> bool {
    message.meta(meta::PROTOCOL_VERSION).is_some()
}

/// Returns whether a message opens a session.
pub fn is_initialize(message: &Frame) -> bool {
    message.method() == Some("initialize")
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value {
        headers.insert(name, mirrored_value(value));
    }
}
