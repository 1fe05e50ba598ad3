//! A read-only HTTP server for an Agent Identity Registry (AgentROA; R-38).
//!
//! The registry is a file that its operator signs elsewhere (`tabellion registry`). The server holds no key and makes no
//! statement of its own: it verifies the file as a gateway does, and serves it with the headers that caches need.
//!
//! * `GET /registry.json`: the version in force, which may be cached for its `ttl_seconds`;
//! * `GET /deltas.json`: the newest revocation deltas, oldest first, which caches revalidate;
//! * `/livez`, `/readyz` and `/metrics` on a separate listener;
//! * `/openapi.json`, the description of both listeners, on each of them.
//!
//! A file that changes is read again at the next request ([`files`]). One that does not verify, or goes back to an
//! earlier version, is not served: the answer is 503 until the operator has replaced it, so that gateways notice.
//!
//! Not here: editing a registry, TLS (a reverse proxy's task), and access control, as a registry is public.

pub mod files;
pub mod limits;
mod metrics;
mod routes;
mod service;

pub use service::{Config, RegistryServer, StartError};

/// The spans of the server, for an export: those of its requests.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans =
    span_export::ExportedSpans { service: "tabellion-registry", targets: &[serving::request_span::TARGET] };
