//! Serving of HTTP, for all daemons: listeners with bounded connections, TLS, graceful drain, health and metrics.
//!
//! A [`Listener`](listener::Listener) accepts connections over TCP, TLS or a Unix socket and passes their requests to a
//! tower service, each with a number ([`request_id`]). [`admin`] has the routes of an admin listener, [`metrics`] the registry that they render, [`http_metrics`] how long requests take, [`description`]
//! the text of a daemon's OpenAPI description, [`problem`] error responses with the address of their documentation, [`rate_limit`] the limit on the requests of one client, [`request_span`] the span of each request, [`collector`] the setting of where spans go, [`config_file`] the reader of configuration files, [`signals`] what stops and reloads a daemon, [`units`] the durations and sizes of configuration files.
//!
//! Not here: routes and access control, which each daemon has of its own.

pub mod admin;
pub mod collector;
pub mod config_file;
pub mod connections;
pub mod description;
pub mod guarded_body;
pub mod http_metrics;
pub mod limits;
pub mod listener;
pub mod metrics;
pub mod network;
pub mod problem;
pub mod rate_limit;
pub mod request_id;
pub mod request_span;
pub mod signals;
pub mod tls;
pub mod units;
pub mod unix_socket;
mod write_timeout;
