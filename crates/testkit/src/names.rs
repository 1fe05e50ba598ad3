//! Names of the test log, its issuers and its gateway.

/// Issuer (`iss`) of the test log.
pub const LOG_ISS: &str = "https://log.example";
/// Origin of the test log.
pub const ORIGIN: &str = "log.example/test";
/// Issuer bound to the key [`es256`](crate::es256), under [`KID`].
pub const ISSUER: &str = "https://issuer.example";
/// Issuer bound to the key [`es384`](crate::es384), under [`KID`].
pub const ISSUER_384: &str = "https://issuer-384.example";
/// Key identifier (`kid`) of the keys of [`ISSUER`], [`ISSUER_384`] and [`GATEWAY`].
pub const KID: &str = "key-1";
/// Issuer bound to the key [`gateway`](crate::gateway), under [`KID`].
pub const GATEWAY: &str = "https://gateway.example";
/// ID of the only instance of [`GATEWAY`]; the same key signs its receipts.
pub const GATEWAY_ID: &str = "gateway:test-1";
