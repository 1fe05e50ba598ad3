//! The admin listener: health, metrics, and the operator's commands. Nothing here is meant for the public.
//!
//! `/livez` fails when only a new process can help; `/readyz` when the service cannot register: the reasons stand in
//! the body. These and the metrics are answered to whoever reaches the listener.
//!
//! Commands are taken over the Unix socket, from the user that runs the service or root; and over TCP, from a program on this
//! host that shows an operator's token. Each command is logged with who gave it, and the answer names them too.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use tracing::Instrument;

use crate::access::CallerRole;
use crate::admin_socket::SocketPeer;
use crate::doors::{Doorkeeper, Peer};
use crate::metrics::Metrics;
use crate::problem;

/// Says whether the service can register, and why not.
#[async_trait::async_trait]
pub trait Readiness: Send + Sync {
    /// Every reason against it; none means ready.
    async fn obstacles(&self) -> Vec<String>;

    /// Why only a new process can help; `None` while this one works or recovers by itself.
    fn stuck(&self) -> Option<String> {
        None
    }

    /// Brings gauges up to date that nobody updates as things happen.
    fn refresh(&self) {}
}

#[derive(Clone)]
struct Admin {
    readiness: Arc<dyn Readiness>,
    metrics: Arc<Metrics>,
}

/// Says in an answer who gave the command.
const OPERATOR: HeaderName = HeaderName::from_static("tabellion-operator");

/// Health and metrics.
pub fn health(readiness: Arc<dyn Readiness>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Admin { readiness, metrics })
}

/// Commands, for operators only.
pub fn commands(commands: Router, doorkeeper: Arc<Doorkeeper>) -> Router {
    commands.layer(from_fn_with_state(doorkeeper, operators_only))
}

/// What the admin listener takes from anybody: nothing for a web page, and over TCP on this host's own address nothing for
/// another name, so that no name which an attacker points here leads a browser to it.
pub fn guarded(routes: Router) -> Router {
    routes.layer(from_fn(refuse_foreign_hosts)).layer(from_fn(refuse_web_pages))
}

/// Lets a command pass if its giver may command, and logs who that is.
async fn operators_only(State(doorkeeper): State<Arc<Doorkeeper>>, request: Request, next: Next) -> Response {
    let by = match operator(&doorkeeper, &request) {
        Ok(by) => by,
        Err(problem) => return *problem,
    };
    let (method, command) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("command", by, %method, command);
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    // Looking is not worth a line; doing is.
    match method {
        Method::GET | Method::HEAD => span.in_scope(|| tracing::debug!(status, "answered an operator")),
        _ => span.in_scope(|| tracing::info!(status, "answered an operator")),
    }
    if let Ok(by) = HeaderValue::from_str(&by) {
        response.headers_mut().insert(OPERATOR, by);
    }
    response
}

/// Who gives the command, or why it is refused.
fn operator(doorkeeper: &Doorkeeper, request: &Request) -> Result<String, Box<Response>> {
    if let Some(SocketPeer { uid }) = request.extensions().get() {
        return Ok(format!("uid {uid}"));
    }
    if !comes_from_here(request) {
        let detail = "Commands are taken over the admin socket, and over TCP from this host only";
        return refused(StatusCode::FORBIDDEN, "not-from-here", detail);
    }
    match doorkeeper.caller(request.headers()) {
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

fn refused<T>(status: StatusCode, code: &str, detail: &str) -> Result<T, Box<Response>> {
    let title = status.canonical_reason().unwrap_or("Request Failed");
    Err(Box::new(problem::on_admin(status, title, code, detail)))
}

/// Whether a program on this host asks, over TCP.
fn comes_from_here(request: &Request) -> bool {
    let Some(Peer(address)) = request.extensions().get() else { return false };
    address.ip().to_canonical().is_loopback()
}

/// A caller on this host reaches it by an address of this host.
async fn refuse_foreign_hosts(request: Request, next: Next) -> Response {
    if !comes_from_here(&request) || names_this_host(&request) {
        return next.run(request).await;
    }
    let detail =
        "The Host header field names another host: reach the admin listener by its address or as localhost";
    problem::on_admin(StatusCode::FORBIDDEN, "Forbidden", "foreign-host", detail)
}

fn names_this_host(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Turns away what a web page makes the operator's browser send: it names the page that asks, and no tool of an operator
/// does. Reading harms nobody, and no page is let see the answer.
async fn refuse_web_pages(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || !request.headers().contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let detail = "The admin listener does nothing for a web page: the request has an Origin header";
    problem::on_admin(StatusCode::FORBIDDEN, "Forbidden", "from-a-web-page", detail)
}

async fn livez(State(admin): State<Admin>) -> Response {
    match admin.readiness.stuck() {
        None => "alive\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let obstacles = admin.readiness.obstacles().await;
    if obstacles.is_empty() {
        return "ready\n".into_response();
    }
    let mut body = obstacles.join("\n");
    body.push('\n');
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

async fn text(State(admin): State<Admin>) -> Response {
    admin.readiness.refresh();
    match admin.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
