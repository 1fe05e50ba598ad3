//! Who may come in: in mode A tokens are for the gateway, in mode B for the server behind it. Never either.

use std::path::PathBuf;

use url::Url;

/// A route's protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// For whom tokens are.
    pub mode: OAuthMode,
    /// The one `aud` that is accepted, exactly: the gateway's resource URI (mode A), or the server's id (mode B).
    pub audience: String,
    /// The one `iss` that is accepted, exactly.
    pub issuer: String,
    /// Its keys.
    pub keys: KeySource,
    /// The algorithms that are accepted.
    pub algorithms: Vec<String>,
    /// Scopes that every request needs.
    pub scopes: Vec<String>,
    /// What the resource metadata names; the issuer unless said.
    pub authorization_servers: Vec<String>,
    /// The `typ` that tokens must have, if any: `at+jwt` (RFC 9068).
    pub token_type: Option<String>,
}

/// For whom tokens are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuthMode {
    /// Mode A, `gateway`: the token ends here; the server gets our own credential, or none.
    Gateway,
    /// Mode B, `upstream`: the token goes on to the server that it is for, and the server's own metadata is shown.
    Upstream {
        /// Where the server's resource metadata is read.
        metadata: Url,
    },
}

/// Where keys are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// A JWK set in a file.
    File(PathBuf),
    /// A JWK set at a URL, pinned here: nothing that a token says leads to another.
    Url {
        /// The URL.
        url: Url,
        /// Certificates to believe instead of the system's (PEM).
        ca_file: Option<PathBuf>,
    },
}
