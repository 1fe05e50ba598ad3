//! Header fields of pages for people, and pages with an error status.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use http::{HeaderMap, HeaderValue};

/// Content security policy of pages: nothing from elsewhere, no script in a page, no frame around it. WebAssembly is for a
/// verifier that this service itself serves.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
                           script-src 'self' 'wasm-unsafe-eval'; base-uri 'none'; form-action 'self'; \
                           frame-ancestors 'none'";

/// Adds the content security policy, and forbids to store the page: its content can depend on the caller.
pub fn confine(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Marks a response with an error status whose body is the page to show. The body of any other one is replaced by a page
/// about the problem.
#[derive(Clone, Copy, Debug)]
pub struct ErrorPage;
