//! The router of the admin listener, with its OpenAPI description: health, metrics, and the operator's commands.
//!
//! The commands describe their own parameters and responses. Problems, the token and the header field that names the caller are
//! added here by rule, so that no command can forget them.

use std::sync::Arc;

use axum::Router;
use serving::{admin as health, description};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response};
use utoipa::{Modify, OpenApi as Description};
use utoipa_axum::router::OpenApiRouter;

use crate::background::readiness;
use crate::edge::admin;
use crate::edge::rate_limit::AccessControl;
use crate::index::{self, Index};
use crate::log::state::Log;
use crate::operator::{clock_correction, freezing, holds, inbox, rotation, statements};
use crate::routes::description::add_response;

/// Name of the security scheme.
const TOKEN: &str = "token";
/// Response header field that names the caller of a command, as descriptions write it.
const OPERATOR: &str = "Tabellion-Operator";

#[derive(Description)]
#[openapi(
    info(
        title = "Tabellion transparency service: operator API",
        description = "The admin listener of a log: health, metrics, and the operator's commands, which the command line gives. Commands \
                       are taken over the Unix socket from the user of the service or root, and over TCP from a program on the same \
                       host with an operator's token. Every 4xx and 5xx of a command is RFC 9457 JSON. Every response has the \
                       request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Operator", description = "Commands"),
        (name = "Admin", description = "Health and metrics")
    ),
    components(schemas(serving::problem::ProblemDetails)),
    modifiers(&Tokens)
)]
struct OperatorDescription;

/// The bearer tokens of operators.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut OpenApi) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some("A token with the role operator; the Unix socket needs none".to_owned());
        document.components.get_or_insert_default().add_security_scheme(TOKEN, SecurityScheme::Http(scheme));
    }
}

/// The OpenAPI description as checked in (`operator.json`): pretty JSON, deterministic.
pub fn operator_openapi_json() -> String {
    let commands = log_commands().into_openapi().merge_from(index::described().into_openapi());
    let described = completed(commands).merge_from(described_health().into_openapi());
    description::text(&OperatorDescription::openapi().merge_from(described))
}

/// The routes of the admin listener.
pub fn router(log: &Arc<Log>, index: Arc<Index>, access: Arc<AccessControl>) -> Router {
    let commands = Router::from(log_commands()).with_state(log.clone());
    let commands = commands.merge(Router::from(index::described()).with_state(index));
    let health = Router::from(described_health()).with_state(log.clone());
    let document = Router::new().route(description::PATH, description::document(operator_openapi_json()));
    admin::guarded(health.merge(document).merge(admin::commands(commands, access)))
}

/// The commands that work on the log.
fn log_commands() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new()
        .merge(holds::described())
        .merge(freezing::described())
        .merge(clock_correction::described())
        .merge(statements::described())
        .merge(inbox::described())
        .merge(rotation::described())
}

fn described_health() -> OpenApiRouter<Arc<Log>> {
    let text = |log: Arc<Log>| {
        readiness::refresh(&log);
        std::future::ready(log.metrics.text())
    };
    OpenApiRouter::new()
        .routes(health::liveness(|log: &Arc<Log>| readiness::stuck(log)))
        .routes(health::readiness(|log: Arc<Log>| async move { readiness::obstacles(&log).await }))
        .routes(health::metrics(text))
}

/// Completes the description that was collected from the commands.
fn completed(mut commands: OpenApi) -> OpenApi {
    for item in commands.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.delete];
        operations.into_iter().flatten().for_each(complete);
    }
    commands
}

fn complete(operation: &mut Operation) {
    let none: [&str; 0] = [];
    operation.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new(TOKEN, none)]);
    add_response(operation, "401", "An operator's token is required over TCP (token)");
    add_response(
        operation,
        "403",
        "The token is not an operator's (role-required), the request comes from elsewhere (not-from-here, foreign-host, \
         from-a-web-page), or the log is frozen",
    );
    if operation.request_body.is_some() {
        add_response(operation, "413", "The body is too large");
        add_response(operation, "415", "The body is not application/json");
        add_response(operation, "422", "The JSON is not such a request");
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            response.headers.insert(OPERATOR.to_owned(), RefOr::T(operator()));
            if status.starts_with(['4', '5']) {
                describe_problem(response);
            }
        }
    }
}

fn operator() -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let description = "The caller of the command: its user ID or the name of its token, once it is known";
    HeaderBuilder::new().schema(Some(text)).description(Some(description)).build()
}

fn describe_problem(response: &mut Response) {
    let details = Content::new(Some(Ref::from_schema_name("ProblemDetails")));
    response.content.insert(serving::problem::MEDIA_TYPE.to_owned(), RefOr::T(details));
}
