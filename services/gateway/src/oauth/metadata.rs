//! Protected resource metadata (RFC 9728): the gateway's in mode A, the server's own in mode B.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use bytes::Bytes;
use serde_json::json;
use url::Url;

use super::jwks::KeysError;
use crate::bounded_fetch::{get_bounded, http_client};
use crate::config::{OAuth, OAuthMode};
use crate::limits::{MAX_JWKS_BYTES, METADATA_FRESH};

/// Path of the metadata, before the path of the resource (RFC 9728, section 3.1).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected resource metadata of one route.
pub struct Metadata {
    url: String,
    path: String,
    shown: MetadataSource,
}

enum MetadataSource {
    Ours(Bytes),
    Theirs { url: Url, http: reqwest::Client, kept: Mutex<Option<(Bytes, Instant)>> },
}

impl Metadata {
    /// The metadata of the route at `path`.
    pub fn of(settings: &OAuth, public_url: &Url, path: &str) -> Result<Self, KeysError> {
        let shown = match &settings.mode {
            OAuthMode::Gateway => MetadataSource::Ours(document(settings)),
            OAuthMode::Upstream { metadata } => MetadataSource::Theirs {
                url: metadata.clone(),
                http: http_client(&[metadata], None)?,
                kept: Mutex::default(),
            },
        };
        let below = format!("{WELL_KNOWN}{path}");
        Ok(Self { url: format!("{}{below}", public_url.as_str().trim_end_matches('/')), path: below, shown })
    }

    /// The URL of the metadata, which challenges name.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path at which the gateway serves the metadata.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The metadata document. In mode B it is the server's, unchanged, cached for [`METADATA_FRESH`].
    ///
    /// # Errors
    /// A [`KeysError`] if the server's metadata cannot be fetched.
    pub async fn document(&self) -> Result<Bytes, KeysError> {
        let (url, http, kept) = match &self.shown {
            MetadataSource::Ours(document) => return Ok(document.clone()),
            MetadataSource::Theirs { url, http, kept } => (url, http, kept),
        };
        let known = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((document, at)) = known().as_ref()
            && at.elapsed() < METADATA_FRESH
        {
            return Ok(document.clone());
        }
        let document = Bytes::from(get_bounded(http, url, MAX_JWKS_BYTES).await?);
        *known() = Some((document.clone(), Instant::now()));
        Ok(document)
    }
}

fn document(settings: &OAuth) -> Bytes {
    let mut document = json!({
        "resource": settings.audience,
        "authorization_servers": settings.authorization_servers,
        "bearer_methods_supported": ["header"],
    });
    if !settings.scopes.is_empty() {
        document["scopes_supported"] = settings.scopes.clone().into();
    }
    Bytes::from(jose::jcs::canonical(&document))
}
