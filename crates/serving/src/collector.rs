//! The setting `otlp`, which all daemons have: the address of an OpenTelemetry collector.
//!
//! Not here: the export to it (`span-export`), which builds with the feature `otlp` have.

use url::Url;

/// Name of the setting.
pub const SETTING: &str = "otlp";
/// What is needed, for error messages.
pub const NEEDED: &str = "the collector's address, like http://127.0.0.1:4318, without credentials and query";

/// Parses the value of the setting; `None` if it is not [`NEEDED`].
pub fn parse(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let has_more = url.query().is_some() || url.fragment().is_some();
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    (!has_more && !has_credentials).then_some(url)
}
