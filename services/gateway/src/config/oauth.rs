//! OAuth protection of a route. In mode A tokens are issued for the gateway, in mode B for the server behind it;
//! a route never accepts both.

use std::path::PathBuf;

use url::Url;

/// The supported algorithms of tokens; `none` and shared secrets are never accepted.
pub const TOKEN_ALGORITHMS: [&str; 4] = ["RS256", "ES256", "EdDSA", "Ed25519"];

/// The OAuth settings of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// The party that tokens are issued for.
    pub mode: OAuthMode,
    /// The only accepted `aud`, compared exactly: the gateway's resource URI (mode A), or the server's resource id
    /// (mode B).
    pub audience: String,
    /// The only accepted `iss`, compared exactly.
    pub issuer: String,
    /// The issuer's keys.
    pub keys: KeySource,
    /// The accepted signature algorithms.
    pub algorithms: Vec<String>,
    /// Scopes that every request needs.
    pub scopes: Vec<String>,
    /// The authorization servers named in the resource metadata; by default the issuer.
    pub authorization_servers: Vec<String>,
    /// The required `typ` of tokens, if any: `at+jwt` (RFC 9068).
    pub token_type: Option<String>,
}

/// The party that tokens are issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuthMode {
    /// Mode A, `gateway`: the token is not forwarded. The server receives the gateway's own credential, or none.
    Gateway,
    /// Mode B, `upstream`: the token is forwarded to the server that it was issued for, and clients see that server's
    /// own metadata.
    Upstream {
        /// The URL of the server's resource metadata (RFC 9728).
        metadata: Url,
    },
}

/// The source of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// A JWK set in a file.
    File(PathBuf),
    /// A JWK set at a URL that is fixed here: no content of a token can lead to another URL.
    Url {
        /// The URL.
        url: Url,
        /// Path of CA certificates (PEM) that are trusted instead of the system's.
        ca_file: Option<PathBuf>,
    },
}
