//! HTTP clients of the daemons and of the program, and the authorities (CA) whose certificates they trust: those of the
//! system and those that the caller adds.
//!
//! A client for plain HTTP needs none: a container image without certificates can still be probed.
//!
//! Not here: certificates that a service presents itself (`serving::tls`).

use std::error::Error as _;
use std::sync::OnceLock;

use reqwest::ClientBuilder;
use thiserror::Error;

/// Reason why there is no HTTP client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoHttpClient {
    /// The system has no certificates of authorities, and the caller added none.
    #[error(
        "HTTPS needs certificates of authorities (CA), and this system or container image has none: install its package \
         ca-certificates, mount a bundle at /etc/ssl/certs/ca-certificates.crt, or name one in the variable SSL_CERT_FILE"
    )]
    NoAuthorities,
    /// The settings of the client cannot be used.
    #[error("no HTTP client: {0}")]
    Settings(String),
}

/// Builds a client. `uses_https` is true if any of its URLs is `https`.
///
/// # Errors
/// [`NoHttpClient`] if HTTPS is used and there are no certificates, or a setting cannot be used.
pub fn build(builder: ClientBuilder, uses_https: bool) -> Result<reqwest::Client, NoHttpClient> {
    // An error means that a provider is installed already; it is the same one in this workspace.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let has_authorities = system_has_authorities();
    let builder = match uses_https || has_authorities {
        true => builder,
        false => builder.tls_certs_only([]),
    };
    builder.build().map_err(|error| match has_authorities {
        true => NoHttpClient::Settings(innermost(&error)),
        false => NoHttpClient::NoAuthorities,
    })
}

/// Returns whether the system has certificates of authorities. Read once: a process keeps what it found.
fn system_has_authorities() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| !rustls_native_certs::load_native_certs().certs.is_empty())
}

/// The innermost cause of an error, which is the most helpful.
fn innermost(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}
