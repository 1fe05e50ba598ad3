//! The setting `otlp`, which all daemons have: the address of an OpenTelemetry collector.
//!
//! Not here: the export to it (`span-export`), which builds with the feature `otlp` have.

use thiserror::Error;
use url::Url;

use crate::network::http_address;

/// Name of the setting.
pub const SETTING: &str = "otlp";

/// A value of the setting that is not the address of a collector. Its text says what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the collector's address, like http://127.0.0.1:4318, without credentials and query")]
pub struct NoCollectorAddress;

/// Parses the value of the setting.
///
/// # Errors
/// [`NoCollectorAddress`] if it is not an HTTP URL, or has credentials, a query or a fragment.
pub fn parse(text: &str) -> Result<Url, NoCollectorAddress> {
    http_address(text).ok_or(NoCollectorAddress)
}
