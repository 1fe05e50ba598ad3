//! The page `/ui/verify`, on which a reader verifies evidence in the browser, and its files.
//!
//! The verifier is a WebAssembly module (`sdk/core`), which the feature `explorer-verifier` builds into the
//! program. The page asks the server for the module and for the evidence that its address names, and its content security
//! policy lets it ask no other server. `offline.html` is the same page with everything in one file: it works without a
//! network, and its own policy forbids any request.
//!
//! Not here: access control (`edge::access`; these files hold no data of the log).

use std::sync::LazyLock;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use data_encoding::BASE64;
use explorer::static_page;
use http::HeaderName;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};

use crate::edge::media;

const TITLE: &str = "Verify evidence – Tabellion";
const BODY: &str = include_str!("verify/body.html");
const BODY_WITHOUT_VERIFIER: &str = include_str!("verify/absent.html");
const STYLE: &str = include_str!("verify/page.css");
const HOST_SCRIPT: &str = include_str!("verify/host.js");
const PAGE_SCRIPT: &str = include_str!("verify/page.js");

/// The verifier, if it is part of this build.
#[cfg(feature = "explorer-verifier")]
const MODULE: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/verifier.wasm")));
/// The verifier, if it is part of this build.
#[cfg(not(feature = "explorer-verifier"))]
const MODULE: Option<&[u8]> = None;

/// Content security policy of the page: scripts, styles and requests of this service only, and WebAssembly.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// `Cache-Control` of the files: a new release of the program may bring new ones.
const CACHED: &str = "public, max-age=300";

/// The tags of the page that `offline.html` replaces by what they refer to.
const STYLE_TAG: &str = "<link rel=\"stylesheet\" href=\"verify/page.css\">";
const HOST_TAG: &str = "<script src=\"verify/host.js\"></script>";
const SCRIPT_TAG: &str = "<script src=\"verify/page.js\"></script>";

/// The page, or how to verify without it if this build has no verifier.
static PAGE: LazyLock<String> =
    LazyLock::new(|| page(if MODULE.is_some() { BODY } else { BODY_WITHOUT_VERIFIER }));
/// The page with its files in it; `None` if this build has no verifier.
static OFFLINE_PAGE: LazyLock<Option<String>> = LazyLock::new(|| MODULE.map(offline_page));

/// The routes of the page.
pub fn routes() -> Router {
    let router = Router::new()
        .route("/ui/verify", get(|| async { file(media::HTML, PAGE.as_str()) }))
        .route("/ui/verify/page.css", get(|| async { file("text/css; charset=utf-8", STYLE) }));
    let Some(module) = MODULE else { return router };
    router
        .route("/ui/verify/host.js", get(|| async { file(SCRIPT_TYPE, HOST_SCRIPT) }))
        .route("/ui/verify/page.js", get(|| async { file(SCRIPT_TYPE, PAGE_SCRIPT) }))
        .route("/ui/verify/verifier.wasm", get(move || async move { file("application/wasm", module) }))
        .route("/ui/verify/offline.html", get(|| async { offline() }))
}

fn page(body: &'static str) -> String {
    static_page(TITLE, "verify/page.css", body)
}

const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";

fn file(media_type: &'static str, body: impl IntoResponse) -> Response {
    (headers(media_type), body).into_response()
}

fn headers(media_type: &'static str) -> [(HeaderName, &'static str); 4] {
    [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, CACHED),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ]
}

/// Serves the page for use without a network, as a download: its scripts are not to run under this service's origin.
fn offline() -> Response {
    let page = OFFLINE_PAGE.as_deref().unwrap_or_default();
    let download = (CONTENT_DISPOSITION, "attachment; filename=\"tabellion-verifier.html\"");
    ([download], file(media::HTML, page)).into_response()
}

/// Puts style, scripts and module into the page, with a policy that allows exactly these scripts and no request.
fn offline_page(module: &[u8]) -> String {
    let policy = format!(
        "default-src 'none'; script-src '{}' '{}' 'wasm-unsafe-eval'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(HOST_SCRIPT),
        source_hash(PAGE_SCRIPT),
        source_hash(STYLE)
    );
    let head =
        format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>{STYLE}</style>");
    let module = BASE64.encode(module);
    let module = format!("<script id=\"module\" type=\"application/wasm;base64\">{module}</script>");
    page(BODY)
        .replace(STYLE_TAG, &head)
        .replace(HOST_TAG, &format!("{module}\n<script>{HOST_SCRIPT}</script>"))
        .replace(SCRIPT_TAG, &format!("<script>{PAGE_SCRIPT}</script>"))
}

/// The source expression for an inline script or style (CSP Level 3, section 2.3.1).
fn source_hash(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_use_without_a_network_refers_to_no_file() {
        let page = offline_page(b"module");
        assert!(!page.contains("src=\"verify/") && !page.contains("href=\"verify/page"), "{page}");
        assert!(page.contains(&BASE64.encode(b"module")) && page.contains(&source_hash(PAGE_SCRIPT)));
    }

    #[test]
    fn scripts_and_style_do_not_end_the_element_that_holds_them() {
        for text in [HOST_SCRIPT, PAGE_SCRIPT, STYLE] {
            assert!(!text.contains("</script") && !text.contains("</style") && !text.contains("<!--"));
        }
    }
}
