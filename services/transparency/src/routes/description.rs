//! The OpenAPI description: what is the same for all routes.
//!
//! The routes describe their own parameters, successful responses, and problems with a cause of their own. The problems
//! that any request may have, the forms of all problems, and tokens are added here by rule, so that no route can forget
//! them.

use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder, Server};
use utoipa::{OpenApi as Description, ToSchema};

use crate::config::roles::CallerRole;
use crate::edge::access::needed;
use crate::edge::media;

/// Name of the security scheme.
const TOKEN: &str = "token";
/// The problems that a request for any resource may have: of the listener, the middleware and the database.
const PROBLEMS: [(&str, &str); 8] = [
    ("400", "Malformed request"),
    ("401", "The bearer token is not known, or has expired"),
    ("414", "The request target is too long"),
    ("429", "Too many requests; Retry-After gives the time to wait"),
    ("431", "The request head is too large, or has too many header fields"),
    ("500", "The service failed, or the log's database is damaged"),
    ("501", "The request has a transfer coding other than chunked"),
    ("503", "The service is busy, or its database does not answer; Retry-After gives the time to wait"),
];
/// The statuses of problems that always have `Retry-After`.
const RETRIED: [&str; 2] = ["429", "503"];

#[derive(Description)]
#[openapi(
    info(
        title = "Tabellion transparency service",
        description = "SCRAPI (draft-ietf-scitt-scrapi-11) and, under /v1, other resources. Every 4xx and 5xx has problem \
                       details: under /v1 RFC 9457 JSON unless CBOR is preferred; elsewhere a concise map \
                       (RFC 9290). Every response has the request's number in X-Request-Id. The operator \
                       may require a token, in particular for registration and for everything that is not evidence.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "SCRAPI", description = "The four resources of the standard"),
        (name = "Log", description = "Reading the log"),
        (name = "C2SP", description = "The tree as tlog monitors, mirrors and witnesses read it"),
        (name = "Service", description = "About the service itself")
    ),
    components(schemas(ProblemDetails))
)]
pub struct ServiceDescription;

/// Why a request failed (RFC 9457).
#[derive(ToSchema)]
#[allow(dead_code)]
struct ProblemDetails {
    /// Address of the documentation of the code.
    r#type: String,
    /// Short title, constant for a kind of problem.
    title: String,
    /// The HTTP status.
    status: u16,
    /// Description of this occurrence.
    detail: String,
    /// The request's number as a URN; the service's log has it too.
    instance: String,
    /// Stable identifier of the cause: `tabellion help CODE` explains it.
    code: String,
    /// The rule of the policy that refused.
    rule: Option<String>,
    /// The location in the statement that violates the rule.
    place: Option<String>,
    /// ID of the conflicting entry.
    entry: Option<String>,
    /// Offset of the byte at which a malformed input is invalid.
    offset: Option<u64>,
}

/// Completes the description that was collected from the routes.
pub fn published(mut description: OpenApi) -> OpenApi {
    let paths = std::mem::take(&mut description.paths.paths);
    description.paths.paths = paths.into_iter().map(|(path, item)| completed(&path, item)).collect();
    // Relative to the description, as a proxy may serve it below a path.
    description.servers = Some(vec![Server::new("./")]);
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = description.components.get_or_insert_default();
    components.security_schemes.insert(TOKEN.to_owned(), RefOr::T(scheme));
    description
}

/// Completes the operations of a path, and rewrites its template to OpenAPI's form, which has no parameter that spans
/// segments (`{*name}`).
fn completed(path: &str, mut item: PathItem) -> (String, PathItem) {
    let is_under_v1 = path.starts_with("/v1/");
    let is_public = needed(path) == Some(CallerRole::Public);
    if let Some(get) = &mut item.get {
        if is_under_v1 {
            add_response(get, "406", "The resource has no form of a type that Accept names");
        }
        if !is_public {
            require_token(get);
        }
        add_problems(get, is_under_v1);
    }
    if let Some(post) = &mut item.post {
        add_response(post, "408", "The request body did not arrive in time");
        require_token(post);
        add_problems(post, is_under_v1);
    }
    (path.replace("{*", "{"), item)
}

/// Says that a token may be needed: the operator decides what callers without one may do.
fn require_token(operation: &mut Operation) {
    add_response(
        operation,
        "401",
        "A bearer token is required, or the one that was sent is not known or has expired",
    );
    add_response(operation, "403", "The token's role or scope does not suffice");
    let none: [&str; 0] = [];
    operation.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new(TOKEN, none)]);
}

/// Adds a response without a body, unless the operation describes one of this status.
pub fn add_response(operation: &mut Operation, status: &str, description: &str) {
    let response = || RefOr::T(ResponseBuilder::new().description(description).build());
    operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
}

/// Adds the problems that any request may have, and completes all problems of an operation.
fn add_problems(operation: &mut Operation, is_under_v1: bool) {
    for (status, description) in PROBLEMS {
        add_response(operation, status, description);
    }
    describe_problems(operation, is_under_v1);
}

/// Gives each problem of an operation its two forms, and `Retry-After` if it always has it.
fn describe_problems(operation: &mut Operation, is_under_v1: bool) {
    let problems =
        operation.responses.responses.iter_mut().filter(|(status, _)| status.starts_with(['4', '5']));
    for (status, response) in problems {
        let RefOr::T(response) = response else { continue };
        describe_problem(response, is_under_v1);
        if RETRIED.contains(&status.as_str()) {
            let seconds = Header::new(<u32 as utoipa::PartialSchema>::schema());
            response.headers.insert("Retry-After".to_owned(), RefOr::T(seconds));
        }
    }
}

fn describe_problem(response: &mut Response, is_under_v1: bool) {
    let json = (media::JSON_PROBLEM, Content::new(Some(Ref::from_schema_name("ProblemDetails"))));
    let cbor = (media::CONCISE_PROBLEM, Content::new(Some(Ref::from_schema_name("Binary"))));
    let forms = if is_under_v1 { vec![json, cbor] } else { vec![cbor] };
    response.content.clear();
    response.content.extend(forms.into_iter().map(|(media, content)| (media.to_owned(), RefOr::T(content))));
}
