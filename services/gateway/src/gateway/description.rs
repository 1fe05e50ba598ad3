//! The OpenAPI description of all listeners of a gateway, which each of them serves.
//!
//! Routes of the admin and the approvals listener describe themselves. The paths of endpoints and of their documents are in
//! the configuration; they are described here, with the path of the endpoint as a parameter.
//!
//! Not here: the methods of MCP and A2A, which have specifications of their own.

use axum::Router;
use serde_json::Value;
use serving::description;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::admin;
use crate::{approvals, posture};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tabellion gateway",
        description = "Admits or refuses each tool call of MCP clients and each request to A2A agents. It has up to three listeners: for \
                       clients, for approvers, and for health and metrics; each path below has the tag of its listener. The \
                       configuration names the endpoints, often /mcp. Every response has the request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Clients", description = "The listener for clients (`listen`)"),
        (name = "Approvals", description = "The listener for approvers (`approvals.listen`)"),
        (name = "Admin", description = "The listener for health and metrics (`admin_listen`)")
    ),
    paths(endpoint_post, endpoint_get, endpoint_delete, resource_metadata, agent_card),
    modifiers(&Tokens)
)]
struct Description;

/// The bearer tokens of clients and approvers.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let clients = "The access token of a client, if the route has OAuth";
        let approvers = "A fresh proof that an approver's key has signed for this listener: a compact JWS";
        for (name, description) in [("client", clients), ("approver", approvers)] {
            let mut scheme = Http::new(HttpAuthScheme::Bearer);
            scheme.description = Some(description.to_owned());
            components.add_security_scheme(name, SecurityScheme::Http(scheme));
        }
    }
}

/// A message of JSON-RPC 2.0: a request, a notification or an answer.
#[derive(ToSchema)]
#[allow(dead_code)]
struct JsonRpcMessage {
    /// `2.0`.
    jsonrpc: String,
    /// The id of the request; notifications have none.
    id: Option<Value>,
    /// The method of a request or a notification.
    method: Option<String>,
    /// Its parameters.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
    /// The result of a request that succeeded.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// The failure of a request, with `code` and `message`.
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

/// Returns the description as it is checked in (`openapi/gateway.json`).
fn text() -> String {
    let listeners = [
        posture::described().into_openapi(),
        approvals::described().into_openapi(),
        admin::described().into_openapi(),
    ];
    description::text(&listeners.into_iter().fold(Description::openapi(), Document::merge_from))
}

/// The route of the description.
pub fn routes() -> Router {
    Router::new().route(description::PATH, description::document(text()))
}

/// Send a message to the server or agent of an endpoint (MCP: Streamable HTTP; A2A: JSON-RPC).
///
/// A tool call that is denied is an answer with status 200, which has a signed Verdict.
#[utoipa::path(
    post,
    path = "/{endpoint}",
    tag = "Clients",
    params(
        ("endpoint" = String, Path, description = "The path of a route of the configuration, such as mcp"),
        ("Mcp-Session-Id" = Option<String>, Header, description = "The session, once the server has named one (MCP)"),
        ("MCP-Protocol-Version" = Option<String>, Header, description = "The negotiated version (MCP)")
    ),
    request_body = JsonRpcMessage,
    responses(
        (status = 200, description = "The answer, or a stream that ends with it",
         content((JsonRpcMessage = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "A notification or an answer was taken"),
        (status = 400, description = "Not a message that can be decided on", body = JsonRpcMessage),
        (status = 401, description = "An access token is required (RFC 9728)"),
        (status = 403, description = "Host, Origin or token do not suffice", body = JsonRpcMessage),
        (status = 404, description = "No route has this path"),
        (status = 413, description = "The message is too long", body = JsonRpcMessage),
        (status = 415, description = "Not JSON in UTF-8", body = JsonRpcMessage),
        (status = 429, description = "Too many requests; Retry-After gives the time to wait", body = JsonRpcMessage),
        (status = 503, description = "No room for the message; Retry-After gives the time to wait", body = JsonRpcMessage)
    ),
    security((), ("client" = []))
)]
#[allow(dead_code)]
fn endpoint_post() {}

/// Open the stream of a server's messages (MCP).
#[utoipa::path(
    get,
    path = "/{endpoint}",
    tag = "Clients",
    params(
        ("endpoint" = String, Path, description = "The path of a route of the configuration, such as mcp"),
        ("Mcp-Session-Id" = Option<String>, Header, description = "The session"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event of a stream that broke off")
    ),
    responses(
        (status = 200, description = "The stream", body = String, content_type = "text/event-stream"),
        (status = 401, description = "An access token is required (RFC 9728)"),
        (status = 403, description = "Host, Origin or token do not suffice", body = JsonRpcMessage),
        (status = 404, description = "No route has this path"),
        (status = 405, description = "The server has no such stream"),
        (status = 502, description = "The server cannot be reached", body = JsonRpcMessage)
    ),
    security((), ("client" = []))
)]
#[allow(dead_code)]
fn endpoint_get() {}

/// End a session (MCP).
#[utoipa::path(
    delete,
    path = "/{endpoint}",
    tag = "Clients",
    params(
        ("endpoint" = String, Path, description = "The path of a route of the configuration, such as mcp"),
        ("Mcp-Session-Id" = Option<String>, Header, description = "The session")
    ),
    responses(
        (status = 200, description = "The session has ended"),
        (status = 401, description = "An access token is required (RFC 9728)"),
        (status = 403, description = "Host, Origin or token do not suffice", body = JsonRpcMessage),
        (status = 404, description = "No route has this path"),
        (status = 405, description = "The server ends sessions itself"),
        (status = 502, description = "The server cannot be reached", body = JsonRpcMessage)
    ),
    security((), ("client" = []))
)]
#[allow(dead_code)]
fn endpoint_delete() {}

/// The protected resource metadata of an endpoint with OAuth (RFC 9728).
#[utoipa::path(
    get,
    path = "/.well-known/oauth-protected-resource/{endpoint}",
    tag = "Clients",
    params(("endpoint" = String, Path, description = "The path of a route of the configuration, such as mcp")),
    responses(
        (status = 200, description = "The metadata", body = Object),
        (status = 404, description = "No route with OAuth has this path"),
        (status = 502, description = "The server's metadata cannot be fetched")
    )
)]
#[allow(dead_code)]
fn resource_metadata() {}

/// The agent card of an A2A endpoint: the agent's own, with the gateway's address.
#[utoipa::path(
    get,
    path = "/{endpoint}/.well-known/agent-card.json",
    tag = "Clients",
    params(("endpoint" = String, Path, description = "The path of a route of the configuration")),
    responses(
        (status = 200, description = "The card", body = Object),
        (status = 404, description = "No route of an A2A agent has this path"),
        (status = 502, description = "The agent's card cannot be fetched")
    )
)]
#[allow(dead_code)]
fn agent_card() {}
