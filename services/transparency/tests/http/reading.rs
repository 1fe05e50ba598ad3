//! What lies beside SCRAPI, under `/v1`: statements, entries, policy, limits, the description.

use crate::common::{COSE, Place, statement};
use reqwest::Method;
use scitt::SignedStatement;
use serde_json::json;
use serving::problem::ErrorDocumentation;

#[tokio::test]
async fn a_statement_can_be_had_back_byte_for_byte() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    let path = format!("/v1/entries/{}/statement", one.digest());
    let answer = site.get(&path).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(COSE)));
    assert_eq!(answer.body, one.bytes().to_vec());
    let cached = answer.header("cache-control").unwrap();
    assert!(cached.contains("max-age=60") && !cached.contains("immutable"), "it may be erased: {cached}");
    let wanted = "application/scitt-statement+cose";
    let labelled = site.send(Method::GET, &path, &[("accept", wanted)], "").await;
    assert_eq!(labelled.header("content-type"), Some(wanted));
}

#[tokio::test]
async fn a_statement_is_not_sent_again_to_a_client_that_has_it() {
    let site = Place::new().start().await;
    let one = statement(1);
    site.registered(&one).await;
    let path = format!("/v1/entries/{}/statement", one.digest());
    let tag = format!("\"{}\"", one.digest());
    assert_eq!(site.get(&path).await.header("etag"), Some(&*tag));
    let known = site.send(Method::GET, &path, &[("if-none-match", &tag)], "").await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(
        (known.header("etag"), known.header("cache-control")),
        (Some(&*tag), Some("public, max-age=60"))
    );
    let other = site.send(Method::GET, &path, &[("if-none-match", "\"other\"")], "").await;
    assert_eq!((other.status, other.body), (200, one.bytes().to_vec()));
}

#[tokio::test]
async fn a_transparent_statement_carries_a_receipt_that_verifies() {
    let site = Place::new().start().await;
    let one = statement(1);
    let receipt = site.registered(&one).await;
    site.registered(&statement(2)).await;
    let answer = site.get(&format!("/v1/entries/{}/transparent", one.digest())).await;
    assert_eq!(answer.status, 200);
    let transparent = SignedStatement::parse(answer.body.clone()).unwrap();
    assert_eq!(transparent.digest(), one.digest());
    assert_eq!(transparent.receipts(), [receipt.bytes().clone()]);
    site.verified(&one, &transparent.receipts()[0]).await;
}

#[tokio::test]
async fn a_statement_whose_issuer_signed_the_place_of_receipts_gets_its_receipt_by_itself() {
    let site = Place::new().start().await;
    let receipts = scitt::cbor::Value::array([]);
    let one = scitt::StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID)
        .iss(testkit::ISSUER)
        .sub("crowded")
        .label(394, receipts)
        .sign(&testkit::es256())
        .unwrap();
    site.registered(&one).await;
    let answer = site.get(&format!("/v1/entries/{}/transparent", one.digest())).await;
    assert_eq!(answer.status, 409);
}

#[tokio::test]
async fn an_entry_is_described_in_json_with_the_policy_and_rule_that_admitted_it() {
    let site = Place::new().start().await;
    let one = statement(1);
    let receipt = site.registered(&one).await;
    let answer = site.get(&format!("/v1/entries/{}", one.digest())).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let entry = answer.json();
    assert_eq!(entry["entry_id"], one.digest().to_string());
    assert_eq!(entry["index"], 1);
    assert_eq!(entry["iss"], testkit::ISSUER);
    assert_eq!(entry["sub"], "thing-1");
    assert_eq!(entry["content_type"], "application/json");
    assert_eq!(entry["policy"], 0);
    assert_eq!(entry["size"], one.bytes().len());
    assert_eq!(entry["erased"], false);
    let at: jiff::Timestamp = entry["at"].as_str().unwrap().parse().unwrap();
    assert_eq!(Some(at.as_second()), receipt.header().claims().unwrap().iat());
    assert_eq!(entry["tree_size_committed"], receipt.signed_tree_size().unwrap().get());
}

#[tokio::test]
async fn pages_follow_the_leaves_and_say_when_there_is_more() {
    let site = Place::new().start().await;
    for n in 1..8 {
        site.registered(&statement(n)).await;
    }
    let mut path = "/v1/entries?limit=3".to_owned();
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let answer = site.get(&path).await;
        let json = answer.json();
        let page = json["entries"].as_array().unwrap();
        assert!(page.len() <= 3);
        seen.extend(page.iter().map(|entry| entry["index"].as_u64().unwrap()));
        pages += 1;
        let Some(link) = answer.header("link") else { break };
        let (next, rel) = link.split_once(';').unwrap();
        assert_eq!(rel.trim(), "rel=\"next\"");
        path = next.trim_matches(['<', '>']).to_owned();
    }
    assert_eq!((seen, pages), ((0..8).collect(), 3));
    assert_eq!(site.get("/v1/entries?after=7").await.json()["entries"], json!([]));
    for wrong in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=-1",
        "after=18446744073709551615",
        "before=x",
        "order=sideways",
    ] {
        let answer = site.get(&format!("/v1/entries?{wrong}")).await;
        assert_eq!((answer.status, answer.problem().get_code()), (400, Some("page")), "{wrong}");
    }
}

#[tokio::test]
async fn the_policy_in_force_is_served_as_json_and_as_the_statement_that_anyone_can_check() {
    let site = Place::new().start().await;
    let json = site.get("/v1/policy").await.json();
    assert_eq!((json["index"].as_u64(), json["revision"].as_u64()), (Some(0), Some(0)));
    assert_eq!(json["policy"]["origin"], testkit::ORIGIN);
    let cose = site.send(Method::GET, "/v1/policy", &[("accept", COSE)], "").await;
    let statement = SignedStatement::parse(cose.body.clone()).unwrap();
    assert_eq!(json["entry_id"], statement.digest().to_string());
    let (in_force, _) = registration::policy_statement::genesis(&statement).unwrap();
    assert_eq!(json["digest"], in_force.policy().digest().to_string());
    let receipt = site.get(&site.location(&statement)).await;
    site.verified(&statement, &receipt.body).await;
}

#[tokio::test]
async fn limits_are_known_before_they_hurt() {
    let site = Place::new().start().await;
    let limits = site.get("/v1/limits").await.json();
    assert_eq!(limits["statement_bytes"], 1 << 20, "what the most generous type admits");
    assert_eq!((limits["headers"].as_u64(), limits["head_bytes"].as_u64()), (Some(100), Some(32 << 10)));
    assert_eq!((limits["header_depth"].as_u64(), limits["payload_depth"].as_u64()), (Some(16), Some(64)));
    assert_eq!(
        (limits["header_seconds"].as_f64(), limits["body_seconds"].as_f64()),
        (Some(10.0), Some(30.0))
    );
}

#[tokio::test]
async fn problems_are_json_under_v1_unless_the_client_prefers_cbor_and_cbor_on_scrapi_paths() {
    let site = Place::new().start().await;
    let (own, scrapi) = (format!("/v1/entries/{}", "0".repeat(64)), format!("/entries/{}", "0".repeat(64)));
    let ask = async |path: &str, accept: &str| site.send(Method::GET, path, &[("accept", accept)], "").await;
    for problem in [
        site.get(&own).await.problem_in_json(),
        ask(&own, "application/json").await.problem_in_json(),
        ask(&own, "application/cbor").await.problem_in_cbor(),
        site.get(&scrapi).await.problem_in_cbor(),
        ask(&scrapi, "application/cose").await.problem_in_cbor(),
        ask(&scrapi, "application/json").await.problem_in_cbor(),
        ask(&scrapi, "application/problem+json").await.problem_in_cbor(),
    ] {
        assert_eq!(problem.get_code(), Some("entry-unknown"));
    }
}

#[tokio::test]
async fn the_description_and_its_page_load_nothing_from_elsewhere() {
    let site = Place::new().start().await;
    let description = site.get("/openapi.json").await.json();
    assert!(description["paths"]["/entries"]["post"].is_object());
    let page = site.get("/docs/").await;
    assert_eq!(page.status, 200);
    assert!(!page.text().contains("https://"), "{}", page.text());
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(site.get("/docs/swagger-ui-bundle.js").await.status, 200);
}

#[tokio::test]
async fn an_operator_names_the_documentation_that_problems_link_to() {
    let own = ErrorDocumentation::parse("https://docs.example/errors/").unwrap();
    let site = Place::new().start_with(|config| config.error_documentation = own).await;
    let problem = site.get("/v1/nothing").await.json();
    assert_eq!(problem["type"], "https://docs.example/errors/route-unknown");
    let refused = site.get(&format!("{}/inbox", site.admin)).await;
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let problem = refused.json();
    assert_eq!(problem["type"], "https://docs.example/errors/token");
    let number = refused.header("x-request-id").unwrap();
    assert_eq!(problem["instance"], format!("urn:uuid:{number}"));
    assert_eq!((&problem["status"], &problem["title"]), (&401.into(), &"Unauthorized".into()));
}

#[test]
fn the_checked_in_descriptions_are_those_of_the_routes() {
    let descriptions = [
        ("openapi.json", transparency::openapi_json()),
        ("operator.json", transparency::operator_openapi_json()),
    ];
    for (name, now) in descriptions {
        let path = format!("{}/../../openapi/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == now,
            "openapi/{name} drifted: run the tests with UPDATE_OPENAPI=1 and look at the difference"
        );
    }
}
