//! Serving of HTTP, for all daemons: listeners with bounded connections, TLS, graceful drain, health and metrics.
//!
//! A [`Listener`](listener::Listener) accepts connections over TCP, TLS or a Unix socket and passes their requests to a
//! tower service, each with a number ([`request_id`]), unless its head is faulty ([`head_fault`]). [`two_listeners`] has the pair that most daemons have. Around it:
//!
//! * Routes: [`admin`] has those of an admin listener, [`description`] the text of a daemon's OpenAPI description,
//!   [`problem`] error responses with the address of their documentation;
//! * Requests: [`rate_limit`] bounds those of one client, [`http_metrics`] measures how long they take, [`request_span`]
//!   makes their spans;
//! * Metrics: [`metrics`] is the registry of all, [`database_metrics`] has how long a database takes;
//! * Settings: [`config_file`] reads configuration files, [`units`] their durations and sizes, [`collector`] where spans
//!   go; [`signals`] stop and reload a daemon.
//!
//! Not here: routes and access control, which each daemon has of its own.

pub mod admin;
pub mod collector;
pub mod config_file;
pub mod connections;
pub mod content_coding;
pub mod database_metrics;
pub mod description;
pub mod failed_write;
pub mod guarded_body;
pub mod head_fault;
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
pub mod two_listeners;
pub mod units;
pub mod unix_socket;
mod unread_body;
mod write_timeout;
