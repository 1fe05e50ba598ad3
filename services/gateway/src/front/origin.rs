//! Checks of `Host` and `Origin` (section 1.3): they protect a server on the user's machine from web pages in the
//! user's browser (DNS rebinding).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serving::head_fault::named_authority;
use url::Url;

use super::refusal::RequestRefusal;
use super::{Plan, headers};
use crate::relay::Response;

/// Response headers that a web page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, agentroa-receipt",
);

/// The origin of a web page that may call the gateway.
pub struct WebOrigin(HeaderValue);

/// Checks `Host` and `Origin`, and returns the web page that sent the request, if any.
pub fn check(head: &Parts, plan: &Plan) -> Result<Option<WebOrigin>, RequestRefusal> {
    headers::refuse_repeated(&head.headers, &[HOST, ORIGIN])?;
    let host = named_authority(&head.headers, &head.uri).map(|named| named.host().to_owned());
    let known = |host: &str| plan.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    if !plan.hosts.is_empty() && !host.as_deref().is_some_and(known) {
        return Err(RequestRefusal::Host);
    }
    let Some(origin) = head.headers.get(ORIGIN) else { return Ok(None) };
    let named = origin.to_str().map_err(|_| RequestRefusal::Origin)?;
    let listed = plan.origins.iter().any(|known| known.eq_ignore_ascii_case(named));
    let is_local = host.as_deref().is_some_and(is_loopback) && is_local_page(named);
    match listed || is_local {
        true => Ok(Some(WebOrigin(origin.clone()))),
        false => Err(RequestRefusal::Origin),
    }
}

fn is_local_page(origin: &str) -> bool {
    let Ok(page) = Url::parse(origin) else { return false };
    matches!(page.scheme(), "http" | "https") && page.host_str().is_some_and(is_loopback)
}

fn is_loopback(host: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// Returns whether this is a CORS preflight request.
pub fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a CORS preflight request.
pub fn preflight(head: &Parts) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let asked = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.extend(asked.map(|asked| (ACCESS_CONTROL_ALLOW_HEADERS, asked)));
    response
}

impl WebOrigin {
    /// Allows the page to read the answer. An upstream's own CORS headers would be about another origin.
    pub fn allow_reading(self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}
