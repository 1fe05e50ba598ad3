//! Who may read what, and who may command: every route of the API's description with every role.

use crate::common::{Answer, COSE, Place, Site, filled, refusal};
use data_encoding::BASE64URL_NOPAD;
use http::Method;
use registration::operator::Action;
use scitt::SignedStatement;
use serde_json::{Value, json};
use transparency::{CallerRole, ClientToken, ClosedTypes, Config, Scope};

/// What tells a caller of each role, and one that was given no role, from the others.
const READER: &str = "reader-of-the-tests";
const AUDITOR: &str = "auditor-of-the-tests";
const OPERATOR: &str = "operator-of-the-tests";
/// An auditor of another issuer's statements only.
const BOUND: &str = "bound-auditor-of-the-tests";
/// One whose time is over.
const EXPIRED: &str = "expired-auditor-of-the-tests";

/// The content type of the statements that these tests close.
const CLOSED: &str = "application/json";

fn tokens() -> Vec<ClientToken> {
    let token = |secret: &str, role| ClientToken { role: Some(role), ..ClientToken::new(secret, secret) };
    let other = Scope { issuers: vec!["https://other.example".into()], content_types: Vec::new() };
    vec![
        token(READER, CallerRole::Reader),
        token(AUDITOR, CallerRole::Auditor),
        token(OPERATOR, CallerRole::Operator),
        ClientToken { scope: other, ..token(BOUND, CallerRole::Auditor) },
        ClientToken { expires: Some(1), ..token(EXPIRED, CallerRole::Auditor) },
    ]
}

async fn site(anonymous: CallerRole) -> (Site, SignedStatement) {
    let change = |config: &mut Config| {
        config.access.tokens = tokens();
        config.access.anonymous_role = anonymous;
        config.access.closed_types = ClosedTypes(vec![CLOSED.into()]);
    };
    let site = Place::new().start_with(change).await;
    let statement = testkit::opaque("closed", &json!({ "secret": "a prompt" }));
    site.registered(&statement).await;
    (site, statement)
}

async fn get_as(site: &Site, path: &str, token: Option<&str>) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", &**bearer)).collect();
    site.send(Method::GET, path, &headers, "").await
}

/// Every GET of the description with its path parameters filled in, and the role that it asks for.
async fn reads(site: &Site, statement: &SignedStatement) -> Vec<(String, CallerRole)> {
    let description = site.get("/openapi.json").await.json();
    let paths = description["paths"].as_object().unwrap();
    let gets = paths.iter().filter(|(_, item)| item.get("get").is_some());
    gets.map(|(path, _)| (filled(path, statement), role_of(path))).collect()
}

/// The table of this test: written down a second time, so that no route changes sides unnoticed.
fn role_of(path: &str) -> CallerRole {
    match path {
        "/entries/{entry_id}"
        | "/.well-known/scitt-configuration"
        | "/.well-known/transparency-configuration"
        | "/.well-known/scitt-keys"
        | "/.well-known/scitt-keys/{kid_value}"
        | "/checkpoint"
        | "/tile/{path}"
        | "/v1/checkpoints"
        | "/v1/checkpoints/{size}"
        | "/v1/erasures"
        | "/v1/erasures/{sequence}"
        | "/v1/limits"
        | "/v1/policy"
        | "/v1/policy/{revision}"
        | "/v1/proof/consistency"
        | "/v1/proof/inclusion"
        | "/v1/witnesses" => CallerRole::Public,
        "/v1/agents/{sub}/summary"
        | "/v1/entries"
        | "/v1/entries/stream"
        | "/v1/entries/{entry_id}"
        | "/v1/entries/{entry_id}/evidence"
        | "/v1/entries/{entry_id}/links"
        | "/v1/equivocations"
        | "/v1/evidence"
        | "/v1/issuers/{iss}"
        | "/v1/issuers/{iss}/chain"
        | "/v1/sessions/{session}"
        | "/v1/streams/{gateway}"
        | "/v1/streams/{gateway}/{stream}" => CallerRole::Reader,
        // Of a closed content type, as the entry here.
        "/v1/entries/{entry_id}/payload"
        | "/v1/entries/{entry_id}/statement"
        | "/v1/entries/{entry_id}/transparent" => CallerRole::Auditor,
        other => panic!("{other} is in the API's description, and no role is listed for it"),
    }
}

#[tokio::test]
async fn every_route_answers_to_its_role_and_to_no_lower_one() {
    let (site, statement) = site(CallerRole::Public).await;
    let callers = [
        (None, CallerRole::Public),
        (Some(READER), CallerRole::Reader),
        (Some(AUDITOR), CallerRole::Auditor),
        (Some(OPERATOR), CallerRole::Operator),
    ];
    for (path, needed) in reads(&site, &statement).await {
        for (token, role) in callers {
            if path == "/v1/entries/stream" && role >= needed {
                continue; // It never ends.
            }
            let answer = get_as(&site, &path, token).await;
            let expected = match (role >= needed, token) {
                (true, _) => None,
                (false, None) => Some(401),
                (false, Some(_)) => Some(403),
            };
            match expected {
                Some(status) => assert_eq!(answer.status, status, "{path} as {role}"),
                None => assert!(!matches!(answer.status, 401 | 403), "{path} as {role}: {}", answer.status),
            }
        }
    }
}

#[tokio::test]
async fn a_closed_body_is_nowhere_in_what_a_reader_gets() {
    let (site, statement) = site(CallerRole::Reader).await;
    let secret = BASE64URL_NOPAD.encode(statement.bytes());
    for (path, _) in reads(&site, &statement).await {
        if path == "/v1/entries/stream" {
            continue;
        }
        for token in [None, Some(READER)] {
            let answer = get_as(&site, &path, token).await;
            let response = answer.text();
            assert!(
                !response.contains("a prompt") && !response.contains(&secret),
                "{path} as {token:?}: {response}"
            );
        }
    }
    let evidence = |answer: Answer| answer.json()["evidence"][1].clone();
    let closed = evidence(get_as(&site, "/v1/evidence", Some(READER)).await);
    assert_eq!((&closed["statement"], &closed["closed"]), (&Value::Null, &json!(true)));
    let open = evidence(get_as(&site, "/v1/evidence", Some(AUDITOR)).await);
    assert_eq!((&open["statement"], open.get("closed")), (&json!(secret), None));
}

#[tokio::test]
async fn a_conversation_record_in_plain_json_is_closed_like_any_other() {
    let place = Place::new();
    let opaque = "[[type]]\ncontent_type = \"application/json\"\ndetached = true\nhash_envelope = true\n";
    let policy = testkit::policy_toml();
    assert!(policy.contains(opaque) && policy.ends_with(testkit::conversation_type()));
    let as_json = "[type.conversation]\naccept_application_json = true\n";
    place.write_policy(&(policy.replace(opaque, "") + as_json));
    let site = place.start_with(|config| config.access.tokens = tokens()).await;
    let record = testkit::conversation_json(1).to_string().into_bytes();
    let statement = testkit::conversation_of(record, "session-1").content_type("application/json");
    let statement = statement.sign(&testkit::recorder()).unwrap();
    site.registered(&statement).await;
    let part = |part: &str| format!("/v1/entries/{}/{part}", statement.digest());
    for path in ["statement", "payload", "transparent"].map(part) {
        assert_eq!(get_as(&site, &path, Some(READER)).await.status, 403, "{path}");
    }
    assert_eq!(get_as(&site, &part("statement"), Some(AUDITOR)).await.status, 200);
    let page = get_as(&site, "/v1/evidence", Some(READER)).await.json();
    let evidence = &page["evidence"][1];
    assert_eq!((&evidence["statement"], &evidence["closed"]), (&Value::Null, &json!(true)));
}

#[tokio::test]
async fn each_read_of_a_closed_body_is_counted() {
    let (site, statement) = site(CallerRole::Reader).await;
    let path = format!("/v1/entries/{}/payload", statement.digest());
    assert_eq!(get_as(&site, &path, Some(AUDITOR)).await.text(), "{\"secret\":\"a prompt\"}");
    assert_eq!(get_as(&site, &path, None).await.status, 401);
    let metrics = site.get(&format!("{}/metrics", site.admin)).await.text();
    assert!(metrics.contains("\ntabellion_closed_bodies_read_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_token_opens_what_it_is_bound_to_until_it_expires() {
    let (site, statement) = site(CallerRole::Reader).await;
    let path = format!("/v1/entries/{}/statement", statement.digest());
    assert_eq!(get_as(&site, &path, Some(AUDITOR)).await.status, 200);
    let bound = get_as(&site, &path, Some(BOUND)).await;
    assert_eq!(bound.refusal(), refusal(403, "Forbidden", "token-scope"));
    let expired = get_as(&site, &path, Some(EXPIRED)).await;
    assert_eq!(expired.refusal(), refusal(401, "Unauthorized", "token"));
}

#[tokio::test]
async fn a_token_registers_what_it_is_bound_to_and_nothing_else() {
    let (site, _) = site(CallerRole::Reader).await;
    let statement = testkit::opaque("bound", &json!({}));
    let bearer = format!("Bearer {BOUND}");
    let headers = [("content-type", COSE), ("authorization", &*bearer)];
    let refused = site.send(Method::POST, "/entries", &headers, statement.bytes().clone()).await;
    assert_eq!(refused.refusal(), refusal(403, "Forbidden", "token-scope"));
    site.registered(&statement).await;
}

#[tokio::test]
async fn a_dry_run_refuses_what_the_token_may_not_register() {
    let (site, _) = site(CallerRole::Reader).await;
    let statement = testkit::opaque("bound", &json!({}));
    for (token, status) in [(BOUND, 403), (AUDITOR, 200)] {
        let bearer = format!("Bearer {token}");
        let headers = [("content-type", COSE), ("authorization", &*bearer)];
        let path = "/v1/policy/evaluate";
        let answer = site.send(Method::POST, path, &headers, statement.bytes().clone()).await;
        assert_eq!(answer.status, status, "{token}: {answer:?}");
    }
}

#[tokio::test]
async fn what_a_token_opened_is_not_for_shared_caches() {
    let (site, statement) = site(CallerRole::Reader).await;
    let path = format!("/v1/entries/{}/statement", statement.digest());
    let opened = get_as(&site, &path, Some(AUDITOR)).await;
    assert_eq!(opened.header("cache-control"), Some("private, max-age=60"));
    let vary: Vec<&str> = opened.headers.get_all("vary").iter().map(|vary| vary.to_str().unwrap()).collect();
    assert_eq!(vary, ["accept", "authorization, origin"]);
}

#[tokio::test]
async fn a_closed_statement_is_not_confirmed_to_a_client_that_names_it() {
    let (site, statement) = site(CallerRole::Reader).await;
    let path = format!("/v1/entries/{}/statement", statement.digest());
    let tag = format!("\"{}\"", statement.digest());
    let refused = site.send(Method::GET, &path, &[("if-none-match", &tag)], "").await;
    assert_eq!(refused.status, 401);
}

#[tokio::test]
async fn web_pages_read_what_is_public_and_the_rest_only_from_listed_origins() {
    let listed = |config: &mut Config| config.access.cors_origins = vec!["https://explorer.example".into()];
    let site = Place::new().start_with(listed).await;
    let readable_by = async |path: &str, origin: &str| {
        let answer = site.send(Method::GET, path, &[("origin", origin)], "").await;
        answer.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(readable_by("/checkpoint", "https://page.example").await.as_deref(), Some("*"));
    assert_eq!(readable_by("/v1/entries", "https://page.example").await, None);
    let listed = readable_by("/v1/entries", "https://explorer.example").await;
    assert_eq!(listed.as_deref(), Some("https://explorer.example"));
}

#[tokio::test]
async fn a_web_page_of_somebody_else_registers_nothing_though_it_may_read() {
    let listed = |config: &mut Config| {
        config.access.cors_origins = vec!["https://explorer.example".into()];
        config.public_url = "https://Log.example:443/of-2026".into();
    };
    let site = Place::new().start_with(listed).await;
    let statement = testkit::opaque("page", &json!({}));
    let from = async |origin: &str| {
        let headers = [("content-type", COSE), ("origin", origin)];
        site.send(Method::POST, "/entries", &headers, statement.bytes().clone()).await
    };
    for origin in ["https://page.example", "https://explorer.example", "https://log.exampl", "https:"] {
        let foreign = from(origin).await;
        assert_eq!(foreign.refusal(), refusal(403, "Forbidden", "from-a-web-page"), "{origin}");
    }
    assert_eq!(from("null").await.status, 403);
    assert_eq!(from(&site.url).await.status, 201, "the service's own page");
    assert_eq!(from("https://log.example").await.status, 201, "its own page behind a proxy");
}

#[tokio::test]
async fn commands_are_taken_from_operators_only() {
    let (site, statement) = site(CallerRole::Reader).await;
    let stated = |number| {
        let action = Action::numbered(statement.digest(), "1", number);
        let statement = testkit::operator_action(&action);
        json!({ "statement": BASE64URL_NOPAD.encode(statement.bytes()) }).to_string()
    };
    let (hold, release) = (stated(0), stated(1));
    let commands = [
        (Method::POST, "/holds", hold.as_str()),
        (Method::GET, "/holds", ""),
        (Method::DELETE, "/holds", &release),
        (Method::GET, "/holds/next", ""),
        (Method::GET, "/operator", ""),
        (Method::POST, "/operator", &hold),
        (Method::POST, "/reindex", ""),
        (Method::GET, "/inbox", ""),
        (Method::POST, "/inbox/refuse", "{}"),
        (Method::GET, "/clock", ""),
        (Method::POST, "/clock", "{}"),
        (Method::POST, "/freeze", "{}"),
    ];
    for (method, path, body) in commands {
        for (token, status) in [(None, 401), (Some("nobody knows this token"), 401), (Some(AUDITOR), 403)] {
            let bearer = token.map(|token| format!("Bearer {token}"));
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(bearer.iter().map(|bearer| ("authorization", &**bearer)));
            let url = format!("{}{path}", site.admin);
            let answer = site.send(method.clone(), &url, &headers, body.to_owned()).await;
            assert_eq!(answer.status, status, "{method} {path} with {token:?}");
        }
    }
    let bearer = format!("Bearer {OPERATOR}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
    let answer = site.send(Method::POST, &format!("{}/holds", site.admin), &headers, hold.clone()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("tabellion-operator"), Some(&*format!("token {OPERATOR}")));
    let wrong = site.command(Method::DELETE, "/holds", hold).await;
    assert_eq!(wrong.status, 400, "a hold is not a release: {wrong:?}");
    let answer = site.command(Method::DELETE, "/holds", release).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(answer.header("tabellion-operator"), Some(&*format!("uid {uid}")));
}

#[tokio::test]
async fn the_admin_listener_answers_to_names_of_this_host_only() {
    let site = Place::new().start().await;
    let (_, port) = site.admin.rsplit_once(':').unwrap();
    for (host, status) in [
        ("rebound.example".to_owned(), 403),
        (format!("127.0.0.1:{port}"), 200),
        ("localhost".into(), 200),
        (format!("[::1]:{port}"), 200),
    ] {
        let url = format!("{}/livez", site.admin);
        let answer = site.send(Method::GET, &url, &[("host", &host)], "").await;
        assert_eq!(answer.status, status, "{host}");
    }
}
