//! Content negotiation that is the same for all resources: the form of problems, and 406.
//!
//! Under `/v1` problems are JSON (RFC 9457) unless the client prefers CBOR. SCRAPI requires concise problem details
//! (RFC 9290) on its own paths, so they are sent there whatever `Accept` says. Pages for people have problems as HTML, and
//! so have all other paths for a browser, which would store CBOR as a file.
//!
//! Not here: the types of a single resource (`routes`), and reading `Accept` (`media`).

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Response};

use crate::edge::media;

/// Serialization of the problems that a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemForm {
    /// Concise problem details (RFC 9290).
    Cbor,
    /// Problem details in JSON (RFC 9457).
    Json,
    /// A page of the explorer.
    Page,
}

/// The types that a client names if it wants CBOR.
const CBOR_TYPES: [&str; 2] = [media::CONCISE_PROBLEM, media::CBOR];
/// The beginnings of the paths that SCRAPI may define.
const SCRAPI_PATHS: [&str; 2] = ["/entries", "/.well-known/"];
/// The types that a client names if it wants JSON.
const JSON_TYPES: [&str; 2] = [media::JSON_PROBLEM, media::JSON];

impl ProblemForm {
    /// The form of problems for a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        let (path, headers) = (request.uri().path(), request.headers());
        let wants =
            |types: &[&str], over: &[&str]| types.iter().any(|one| media::prefers(headers, one, over));
        match () {
            () if is_page(path) => Self::Page,
            () if is_under_v1(path) => {
                let cbor = wants(&CBOR_TYPES, &[]) && !wants(&JSON_TYPES, &CBOR_TYPES);
                if cbor { Self::Cbor } else { Self::Json }
            }
            () if !is_scrapi(path) && wants(&[media::HTML_ESSENCE], &CBOR_TYPES) => Self::Page,
            () => Self::Cbor,
        }
    }
}

/// Returns `true` for the path of a page for people.
pub fn is_page(path: &str) -> bool {
    path == "/ui" || path.starts_with("/ui/")
}

fn is_scrapi(path: &str) -> bool {
    SCRAPI_PATHS.iter().any(|beginning| path.starts_with(beginning))
}

fn is_under_v1(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}

/// What a request accepts, if its resource may refuse with 406: reads under `/v1`. Elsewhere a type that the client did
/// not name is served nevertheless (RFC 9110, section 12.5.1), since SCRAPI has no 406.
#[derive(Debug)]
pub struct AcceptedTypes(Option<HeaderMap>);

impl AcceptedTypes {
    /// The accepted types of a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let values = request.headers().get_all(ACCEPT).iter();
        let named = || values.map(|value| (ACCEPT, value.clone())).collect();
        Self((reads && is_under_v1(request.uri().path())).then(named))
    }

    /// Returns `true` if a successful response has a type that the client excludes.
    pub fn exclude<B>(&self, response: &Response<B>) -> bool {
        let Some(accepted) = self.0.as_ref().filter(|_| response.status().is_success()) else { return false };
        media::essence(response.headers()).is_some_and(|served| !media::accepts(accepted, &served))
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    fn request(path: &str, accept: &str) -> Request<()> {
        let request = Request::builder().uri(path);
        let request = if accept.is_empty() { request } else { request.header(ACCEPT, accept) };
        request.body(()).unwrap()
    }

    #[test]
    fn problems_are_json_under_v1_cbor_elsewhere_and_pages_for_people() {
        use ProblemForm::{Cbor, Json, Page};
        for (path, accept, form) in [
            ("/v1/entries", "", Json),
            ("/v1/entries", "*/*", Json),
            ("/v1/entries", "application/cose", Json),
            ("/v1/entries", "application/cbor", Cbor),
            ("/v1/entries", "application/cbor, application/json", Json),
            ("/v1/entries", "application/concise-problem-details+cbor, application/json;q=0.5", Cbor),
            ("/entries", "", Cbor),
            ("/entries", "*/*", Cbor),
            ("/entries", "application/json", Cbor),
            ("/entries", "application/problem+json", Cbor),
            ("/entries", "application/cose, application/json;q=0.9", Cbor),
            ("/entries/zz", "text/html", Cbor),
            ("/.well-known/nothing", "text/html", Cbor),
            ("/nothing", "", Cbor),
            ("/nothing", "*/*", Cbor),
            ("/nothing", "text/html,application/xhtml+xml,*/*;q=0.8", Page),
            ("/nothing", "text/html;q=0.5, application/cbor", Cbor),
            ("/v1/nothing", "text/html", Json),
            ("/v10", "", Cbor),
            ("/ui/search", "application/json", Page),
            ("/", "", Cbor),
            ("/ui", "", Page),
        ] {
            assert_eq!(ProblemForm::of(&request(path, accept)), form, "{path} {accept}");
        }
    }

    #[test]
    fn a_read_under_v1_is_refused_if_its_type_is_not_accepted() {
        let json =
            Response::builder().header(CONTENT_TYPE, "application/json; charset=utf-8").body(()).unwrap();
        for (path, accept, excluded) in [
            ("/v1/entries", "", false),
            ("/v1/entries", "*/*", false),
            ("/v1/entries", "application/*", false),
            ("/v1/entries", "text/html, application/json;q=0.1", false),
            ("/v1/entries", "text/html", true),
            ("/v1/entries", "application/json;q=0, */*", true),
            ("/entries", "text/html", false),
        ] {
            assert_eq!(AcceptedTypes::of(&request(path, accept)).exclude(&json), excluded, "{path} {accept}");
        }
    }
}
