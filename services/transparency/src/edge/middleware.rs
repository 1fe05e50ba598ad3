//! The middleware around all routes.
//!
//! From the outside in: [`frame`] (head limits, problem bodies, headers, log line, metrics), rate limiter (`rate_limit`),
//! time limit and panic catcher ([`guarded`]), routes. The frame is outermost so that all responses, also the framework's
//! own, have the same form. To the router all of them are one layer, as each layer allocates its futures and copies the
//! service for each request. The request's number comes from the listener (`serving::request_id`).
//!
//! Known limit: requests that hyper itself refuses (a request line that is not HTTP, a target over 64 KiB, more than 256
//! headers, a head over 128 KiB) get a bare status without a body, and a head that does not arrive in time gets a closed
//! connection.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY, RETRY_AFTER,
    SERVER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serving::head_fault::HeadFault;
use serving::request_id::RequestId;
use serving::request_span;
use tracing::Instrument;

use crate::config::roles::CallerRole;
use crate::edge::access::needed;
use crate::edge::html::{self, ErrorPage};
use crate::edge::media;
use crate::edge::negotiation::{AcceptedTypes, ProblemForm, is_page};
use crate::edge::problem::{CONTENT_CODING, Problem};
use crate::edge::rate_limit::{self, AccessControl};
use crate::edge::state::EdgeState;

/// The header fields that the rate limiter writes.
const RATE_LIMIT: [HeaderName; 2] =
    [HeaderName::from_static("ratelimit"), HeaderName::from_static("ratelimit-policy")];

/// Wraps the routes in the middleware.
pub fn enclose(routes: Router, edge: Arc<EdgeState>) -> Router {
    routes
        .fallback(|| async { Problem::of_status(StatusCode::NOT_FOUND) })
        .method_not_allowed_fallback(|| async { Problem::of_status(StatusCode::METHOD_NOT_ALLOWED) })
        .layer(from_fn_with_state(edge, frame))
}

/// The properties of a request that the middleware needs for its response.
struct RequestInfo {
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    problem_form: ProblemForm,
    accepted: AcceptedTypes,
    preflight: bool,
    /// `true` if the resource requires no role.
    public: bool,
    /// `true` if the request has an `Authorization` header field.
    authorized: bool,
    /// The value of `Access-Control-Allow-Origin`: the origin whose web pages may read the response.
    readable_by: Option<HeaderValue>,
}

impl RequestInfo {
    fn of(request: &Request, access: &AccessControl) -> Self {
        let problem_form = ProblemForm::of(request);
        let route: Option<MatchedPath> = request.extensions().get().cloned();
        let public = route.as_ref().is_none_or(|route| needed(route.as_str()) == Some(CallerRole::Public));
        Self {
            id: RequestId::of(request.extensions()),
            method: request.method().clone(),
            route,
            problem_form,
            accepted: AcceptedTypes::of(request),
            preflight: is_preflight(request),
            public,
            authorized: request.headers().contains_key(AUTHORIZATION),
            readable_by: match () {
                // What a page shows can depend on the caller. `Accept` has no influence: caches store tiles without it.
                () if is_page(request.uri().path()) => None,
                () if public => Some(HeaderValue::from_static("*")),
                () => listed_origin(request, access),
            },
        }
    }

    fn reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("", MatchedPath::as_str)
    }
}

/// Returns `true` for a CORS preflight (Fetch) that asks to read. Preflights for writes get no permission.
fn is_preflight(request: &Request) -> bool {
    let wanted = request.headers().get(ACCESS_CONTROL_REQUEST_METHOD);
    let reads = wanted.is_some_and(|method| method == "GET" || method == "HEAD");
    request.method() == Method::OPTIONS && reads
}

/// The origin of the requesting web page, if the configuration lists it.
fn listed_origin(request: &Request, access: &AccessControl) -> Option<HeaderValue> {
    let origin = request.headers().get(ORIGIN)?;
    access.admits_origin(origin.to_str().ok()?).then(|| origin.clone())
}

/// Returns `true` for a write from a web page of another origin (CSRF) than the service's own: `own_origin`, or that of the
/// request. Programs send no `Origin`.
fn is_foreign_page(request: &Request, own_origin: Option<&str>) -> bool {
    let Some(origin) = request.headers().get(ORIGIN).filter(|_| request.method() == Method::POST) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or_default();
    if own_origin == Some(origin) {
        return false;
    }
    let here = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let here = here.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    origin.split_once("://").is_none_or(|(_, authority)| here != Some(authority))
}

/// The outermost middleware.
async fn frame(State(edge): State<Arc<EdgeState>>, request: Request, next: Next) -> Response {
    let request_info = RequestInfo::of(&request, &edge.access);
    let started = Instant::now();
    let span =
        request_span::begin(request_info.id, &request_info.method, request_info.route(), request.headers());
    let in_flight = edge.metrics.http.in_flight();
    let response = match head_problem(&request, &edge) {
        Some(problem) => problem.into_response(),
        None => {
            // Within the rate limiter, which refunds a request that ends in a panic or takes too long.
            let answer = |request| guarded(&edge, request, next);
            let limited = rate_limit::authenticate_and_limit(&edge.access, request, answer);
            let caught = AssertUnwindSafe(limited).catch_unwind();
            caught.instrument(span.clone()).await.unwrap_or_else(after_panic)
        }
    };
    drop(in_flight);
    let response = dressed(response, &request_info, &edge);
    let took = started.elapsed();
    edge.metrics.http.answered(&request_info.method, request_info.route(), response.status(), took);
    request_span::end(&span, response.status());
    span.in_scope(|| log(response.status(), took.as_secs_f64()));
    response
}

fn log(status: StatusCode, seconds: f64) {
    match status.as_u16() {
        500.. => tracing::warn!(status = status.as_u16(), seconds, "answered"),
        400.. => tracing::info!(status = status.as_u16(), seconds, "answered"),
        _ => tracing::debug!(status = status.as_u16(), seconds, "answered"),
    }
}

fn head_problem(request: &Request, edge: &EdgeState) -> Option<Problem> {
    let limits = edge.limits.load();
    if let Some(fault) = request.extensions().get::<HeadFault>() {
        return Some(refused_for(*fault));
    }
    if is_foreign_page(request, edge.own_origin.as_deref()) {
        let detail =
            "A web page of another origin may not register here; a program may, which sends no Origin";
        return Some(Problem::new(StatusCode::FORBIDDEN, "from-a-web-page", "Forbidden", detail));
    }
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > limits.head_bytes {
        let detail = format!("The request target is longer than {} bytes", limits.head_bytes);
        return Some(Problem::new(StatusCode::URI_TOO_LONG, "head-too-large", "URI Too Long", detail));
    }
    let title = "Request Header Fields Too Large";
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    if request.headers().len() > limits.headers {
        let detail = format!("The request has more than {} header fields", limits.headers);
        return Some(Problem::new(status, "headers-too-many", title, detail));
    }
    // As HTTP/1 writes a field: name, colon, space, value, line end.
    let fields: usize =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if target + fields > limits.head_bytes {
        let detail = format!("The request head is larger than {} bytes", limits.head_bytes);
        return Some(Problem::new(status, "head-too-large", title, detail));
    }
    None
}

/// The refusal of a request with this fault.
fn refused_for(fault: HeadFault) -> Problem {
    match fault.status() {
        StatusCode::BAD_REQUEST => Problem::malformed(fault.code(), fault.detail()),
        status => {
            let title = status.canonical_reason().unwrap_or("Request Failed");
            Problem::new(status, fault.code(), title, fault.detail())
        }
    }
}

/// Completes a response: the problem body of an error, and the headers of all responses.
fn dressed(mut response: Response, request_info: &RequestInfo, edge: &EdgeState) -> Response {
    // A preflight grants reading to any existing resource; the actual request is checked for permission.
    if request_info.preflight
        && request_info.readable_by.is_some()
        && response.status() == StatusCode::METHOD_NOT_ALLOWED
    {
        response = replaced(&response, may_be_read());
    }
    if request_info.accepted.exclude(&response) {
        response = replaced(&response, not_acceptable().into_response());
    }
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && response.extensions().get::<ErrorPage>().is_none() {
        response = with_problem(response, request_info, edge);
    }
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("tabellion"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if request_info.reads() && !request_info.public {
        keep_from_shared_caches(headers, request_info.authorized);
    }
    if let Some(origin) =
        request_info.readable_by.as_ref().filter(|_| request_info.preflight || request_info.reads())
    {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "location, link, retry-after, ratelimit, ratelimit-policy, deprecation, etag, x-request-id",
            ),
        );
    }
    response
}

/// The response that is sent in place of another one, whose rate limit it keeps.
fn replaced(other: &Response, mut response: Response) -> Response {
    copy_fields(&RATE_LIMIT, other.headers(), response.headers_mut());
    response
}

/// 406: no form of the resource has a type that the client accepts.
fn not_acceptable() -> Problem {
    let detail = "This resource has no form of a type that the Accept header field names";
    Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", "Not Acceptable", detail)
}

/// Marks a response as private if the caller sent a token: a shared cache must neither store it nor serve it to another
/// caller.
fn keep_from_shared_caches(headers: &mut HeaderMap, authorized: bool) {
    headers.append(VARY, HeaderValue::from_static("authorization, origin"));
    let kept = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let private = kept.filter(|_| authorized).and_then(|value| value.strip_prefix("public"));
    if let Some(rest) = private.and_then(|rest| HeaderValue::try_from(format!("private{rest}")).ok()) {
        headers.insert(CACHE_CONTROL, rest);
    }
}

fn may_be_read() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, last-event-id, if-none-match, accept"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn with_problem(mut response: Response, request_info: &RequestInfo, edge: &EdgeState) -> Response {
    let status = response.status();
    let problem = response
        .extensions_mut()
        .remove::<Box<Problem>>()
        .unwrap_or_else(|| Box::new(Problem::of_status(status)));
    let (media, body) = match request_info.problem_form {
        ProblemForm::Cbor => (media::CONCISE_PROBLEM, problem.to_cbor(request_info.id.0)),
        ProblemForm::Json => {
            (media::JSON_PROBLEM, problem.to_json(request_info.id.0, &edge.error_documentation))
        }
        ProblemForm::Page => (media::HTML, problem.to_page(request_info.id.0, &edge.public_path)),
    };
    let mut dressed = (status, body).into_response();
    let headers = dressed.headers_mut();
    // The header fields that describe the error itself and not the replaced body.
    copy_fields(&[ALLOW, RETRY_AFTER, CACHE_CONTROL, CONNECTION], response.headers(), headers);
    copy_fields(&RATE_LIMIT, response.headers(), headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge(request_info.problem_form)));
    }
    if request_info.problem_form == ProblemForm::Page {
        html::confine(headers);
    }
    // Not with other 415s, so that a client can tell them apart (RFC 9110, section 12.5.3).
    if problem.code == CONTENT_CODING {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(seconds) = problem.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    dressed
}

/// The scheme by which a caller can show its token. A browser can send a token as a password only (RFC 7617).
fn challenge(form: ProblemForm) -> &'static str {
    match form {
        ProblemForm::Page => "Basic realm=\"A token, as the password\", charset=\"UTF-8\"",
        ProblemForm::Cbor | ProblemForm::Json => "Bearer",
    }
}

/// Copies the header fields of these names.
fn copy_fields(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        if let Some(value) = from.get(name) {
            to.insert(name, value.clone());
        }
    }
}

/// Answers within the time limit; a panic of a handler becomes a problem.
async fn guarded(edge: &EdgeState, request: Request, next: Next) -> Response {
    let limits = edge.limits.load_full();
    let answering = AssertUnwindSafe(next.run(request));
    // Reading the body has its own limit; this one adds the time for the service's own work.
    match tokio::time::timeout(limits.body_time + limits.request_time, answering.catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(cause)) => after_panic(cause),
        Err(_) => {
            let detail = "The service did not finish in time; registering the same statement again is safe";
            Problem::busy("too-slow", detail, limits.retry_after.into()).into_response()
        }
    }
}

fn after_panic(cause: Box<dyn Any + Send>) -> Response {
    let text =
        cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    tracing::error!(cause = text.unwrap_or("unknown"), "a handler panicked");
    Problem::internal().into_response()
}
