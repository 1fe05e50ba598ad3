//! Requests below the path of `public_url`.
//!
//! A proxy removes this path or keeps it, and the links of the explorer have it at the listener itself, too. It is removed
//! before a route is chosen.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::map_request_with_state;
use http::Uri;
use http::uri::PathAndQuery;

/// Wraps the routes so that a request below `path` is one for the rest of its address. `path` begins with a slash, or is
/// empty.
///
/// `names` are the first parts of the service's own addresses. A path that begins with one of them is not removed: a
/// request that begins with it can be one whose path a proxy has removed.
pub fn served_below(path: &str, names: &[&str], routes: Router) -> Router {
    if path.is_empty() || names.contains(&first_part(path)) {
        return routes;
    }
    Router::new().fallback_service(routes).layer(map_request_with_state(Arc::<str>::from(path), remove_path))
}

/// Returns the first part of an address: `v1` of `/v1/entries`.
pub fn first_part(address: &str) -> &str {
    address.trim_start_matches('/').split('/').next().unwrap_or_default()
}

async fn remove_path(State(path): State<Arc<str>>, mut request: Request) -> Request {
    if let Some(uri) = without(request.uri(), &path) {
        *request.uri_mut() = uri;
    }
    request
}

/// Returns the address without `path`, if it is below it.
fn without(uri: &Uri, path: &str) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(path)?;
    let rest: PathAndQuery = match rest {
        "" => PathAndQuery::from_static("/"),
        below if below.starts_with('/') => below.parse().ok()?,
        _ => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_path_is_an_address_without_it_and_anything_else_is_not() {
        let cases = [
            ("/log", Some("/")),
            ("/log/", Some("/")),
            ("/log/ui/search?limit=1", Some("/ui/search?limit=1")),
            ("http://log.example/log/ui", Some("http://log.example/ui")),
            ("/logs/ui", None),
            ("/ui/log", None),
            ("*", None),
        ];
        for (address, rest) in cases {
            let found = without(&address.parse().unwrap(), "/log");
            assert_eq!(found.map(|uri| uri.to_string()).as_deref(), rest, "{address}");
        }
    }
}
