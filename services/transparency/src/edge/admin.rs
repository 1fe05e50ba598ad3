//! Access to the admin listener. Health and metrics require no token.
//!
//! Commands are accepted over the Unix socket from the user that runs the service or from root, and over TCP from a
//! program on this host with an operator's token. Each command is logged with its caller, and the header field
//! `tabellion-operator` of the response names the caller too.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::ORIGIN;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serving::head_fault::named_authority;
use serving::listener::PeerAddress;
use serving::problem::{JsonProblem, for_every_error};
use serving::unix_socket::SocketPeer;
use tracing::Instrument;

use crate::config::roles::CallerRole;
use crate::edge::rate_limit::AccessControl;

/// Response header field that names the caller of a command.
const OPERATOR: HeaderName = HeaderName::from_static("tabellion-operator");

/// What the commands are, for a 404 of theirs.
const RESOURCES: &str = "the commands are in /openapi.json";

/// Adds the check that only operators may call these routes, and problem details to errors without.
pub fn commands(commands: Router, access_control: Arc<AccessControl>) -> Router {
    for_every_error(commands, RESOURCES).layer(from_fn_with_state(access_control, operators_only))
}

/// Protects the admin listener's routes against web pages: a command with an `Origin` header field is refused, and a
/// request over TCP from this host must name this host (DNS rebinding).
pub fn guarded(routes: Router) -> Router {
    routes.layer(from_fn(refuse_foreign_hosts)).layer(from_fn(refuse_web_pages))
}

/// Middleware: passes a command on if its caller is an operator, and logs the caller.
async fn operators_only(
    State(access_control): State<Arc<AccessControl>>,
    request: Request,
    next: Next,
) -> Response {
    let by = match operator(&access_control, &request) {
        Ok(by) => by,
        Err(problem) => return *problem,
    };
    let (method, command) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("command", by, %method, command);
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    // Reads are logged at debug level only.
    match method {
        Method::GET | Method::HEAD => span.in_scope(|| tracing::debug!(status, "answered an operator")),
        _ => span.in_scope(|| tracing::info!(status, "answered an operator")),
    }
    if let Ok(by) = HeaderValue::from_str(&by) {
        response.headers_mut().insert(OPERATOR, by);
    }
    response
}

/// The caller of a command, or the response that refuses it.
fn operator(access_control: &AccessControl, request: &Request) -> Result<String, Box<Response>> {
    if let Some(SocketPeer { uid }) = request.extensions().get() {
        return Ok(format!("uid {uid}"));
    }
    if !comes_from_here(request) {
        let detail = "Commands are taken over the admin socket, and over TCP from this host only";
        return refused(StatusCode::FORBIDDEN, "not-from-here", detail);
    }
    match access_control.caller(request.headers()) {
        Some(caller) if caller.role >= CallerRole::Operator => {
            Ok(format!("token {}", caller.name.as_deref().unwrap_or_default()))
        }
        Some(_) => {
            refused(StatusCode::FORBIDDEN, "role-required", "The token does not have the role operator")
        }
        None => {
            let detail = "Give commands over the admin socket, or show a bearer token with the role operator";
            refused(StatusCode::UNAUTHORIZED, "token", detail)
        }
    }
}

fn refused<T>(status: StatusCode, code: &'static str, detail: &'static str) -> Result<T, Box<Response>> {
    Err(Box::new(JsonProblem::new(status, code, detail).into_response()))
}

/// Returns `true` for a TCP request from a program on this host.
fn comes_from_here(request: &Request) -> bool {
    let Some(PeerAddress(address)) = request.extensions().get() else { return false };
    address.ip().to_canonical().is_loopback()
}

/// Middleware: refuses requests from this host that name another host. A program on this host uses an address
/// of this host, or `localhost`.
async fn refuse_foreign_hosts(request: Request, next: Next) -> Response {
    if !comes_from_here(&request) || names_this_host(&request) {
        return next.run(request).await;
    }
    let detail =
        "The Host header field names another host: reach the admin listener by its address or as localhost";
    JsonProblem::new(StatusCode::FORBIDDEN, "foreign-host", detail).into_response()
}

fn names_this_host(request: &Request) -> bool {
    let Some(named) = named_authority(request.headers(), request.uri()) else { return false };
    let name = named.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Middleware: refuses what a web page makes the operator's browser send. Browsers add the `Origin` header field; the
/// operator's tools do not. Reads are harmless, because no page may see the response.
async fn refuse_web_pages(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || !request.headers().contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let detail = "The admin listener does nothing for a web page: the request has an Origin header";
    JsonProblem::new(StatusCode::FORBIDDEN, "from-a-web-page", detail).into_response()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::body::Body;
    use http::Version;

    use super::*;

    #[test]
    fn a_request_of_http_2_names_this_host_in_its_target() {
        for (target, is_this_host) in [
            ("http://localhost:7391/livez", true),
            ("http://127.0.0.1/livez", true),
            ("http://[::1]:7391/livez", true),
            ("http://rebound.example/livez", false),
            ("http://localhost.rebound.example/livez", false),
        ] {
            let request = Request::builder().version(Version::HTTP_2).uri(target);
            assert_eq!(names_this_host(&request.body(Body::empty()).unwrap()), is_this_host, "{target}");
        }
    }
}
