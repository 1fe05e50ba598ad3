//! A log behind a reverse proxy, below a path, as `docs/operations.md` describes it.

use black_box::{Log, ReverseProxy};
use serde_json::json;

/// A name with slashes, percent-encoded as in the paths below `/v1`.
const NAME: &str = "https%3A%2F%2Fnobody.example";
/// The address for clients in `docs/operations.md`.
const PUBLIC_URL: &str = "https://example.org/log";

#[test]
fn a_log_below_a_path_of_the_documented_proxy_answers_as_without_it() {
    let log = Log::sqlite();
    let service = log.serve_with(&[("TABELLION_PUBLIC_URL", PUBLIC_URL.to_owned())]);
    let statement = log.statement();
    let proxy = ReverseProxy::as_documented(&service);
    let (mut proxied, mut direct) = (proxy.connection(), service.connection());

    let kind = [("content-type", "application/cose")];
    let registered = proxied.send("POST", "/log/entries", &kind, statement.bytes());
    assert_eq!(registered.status, 201);
    let location = format!("/entries/{}", statement.digest());
    assert_eq!(registered.must_have("location"), format!("{PUBLIC_URL}{location}"));

    for path in [location.as_str(), "/checkpoint", "/tile/0/000.p/1", "/v1/entries?limit=1&order=newest"] {
        assert_eq!(proxied.get(&format!("/log{path}")).status, 200, "{path}");
    }
    assert_eq!(proxied.get("/log/v1/entries?order=nonsense").status, 400, "the query arrives");
    for list in ["issuers", "streams", "sessions"] {
        let path = format!("/v1/{list}/{NAME}");
        let (through, own) = (proxied.get(&format!("/log{path}")), direct.get(&path));
        assert_eq!((through.status, &through.json()["code"]), (own.status, &own.json()["code"]), "{path}");
    }
    let first_page = proxied.get("/log/ui/");
    assert_eq!((first_page.status, first_page.header("location")), (303, Some("/log/ui")));
    let documentation = proxied.get("/log/docs");
    assert_eq!((documentation.status, documentation.header("location")), (303, Some("docs/")));
    let servers = proxied.get("/log/openapi.json").json()["servers"].clone();
    assert_eq!(servers, json!([{ "url": "./" }]), "relative to the description");
    let entry = String::from_utf8(proxied.get(&format!("/log/ui{location}")).body).unwrap();
    for address in ["/ui/search", "/ui/style.css", &format!("/ui{location}/proof"), "/docs/"] {
        assert!(entry.contains(&format!("href=\"/log{address}\"")), "no {address}: {entry}");
        assert_eq!(proxied.get(&format!("/log{address}")).status, 200, "{address}");
    }
    let large = vec![0; 2 << 20];
    let (through, own) =
        (proxied.send("POST", "/log/entries", &kind, &large), direct.send("POST", "/entries", &kind, &large));
    assert_eq!(through.refusal(), own.refusal(), "the log refuses what is too large, not the proxy");
    service.stop();
}
