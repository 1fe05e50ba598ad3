//! The setting `otlp`, which all daemons have: the address of an OpenTelemetry collector.
//!
//! Not here: the export to it (`span-export`), which builds with the feature `otlp` have.

use thiserror::Error;
use url::Url;

/// Name of the setting.
pub const SETTING: &str = "otlp";

/// A value of the setting that is not the address of a collector. Its text says what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the collector's address, like http://127.0.0.1:4318, without credentials and query")]
pub struct NoCollectorAddress;

/// Parses the value of the setting.
///
/// # Errors
/// [`NoCollectorAddress`] if it is no HTTP URL, or has credentials, a query or a fragment.
pub fn parse(text: &str) -> Result<Url, NoCollectorAddress> {
    let url = Url::parse(text).map_err(|_| NoCollectorAddress)?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let has_more = url.query().is_some() || url.fragment().is_some();
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    (is_http && !has_more && !has_credentials).then_some(url).ok_or(NoCollectorAddress)
}
