//! The explorer over HTTP: each page shows what the API says, text of statements stays text, and roles hold.

use std::time::Duration;

use crate::common::witness::{Manner, TestWitness, k_of};
use crate::common::{Answer, Place, Site, erasure};
use bundle::{BundleVerdict, EvidenceBundle};
use merkle::{EntryDigest, RootHash};
use registration::Policy;
use registration::conversation::Form;
use registration::policy_statement;
use reqwest::Method;
use scitt::{SignedStatement, Signer, StatementBuilder};
use sequencer::PinFile;
use serde_json::json;
use store::Pin;
use testkit::agentroa::{AGENTS, chain_statement, delegated, receipt_under, root};
use testkit::{
    AGENT, COMMITMENT, SESSION, aer_json, aer_statement, audit_json, audit_record, conversation,
    conversation_builder, conversation_json, conversation_of, decision_json, gateway, outcome_json, receipt,
    receipt_json, recorder, verdict, verdict_json, verifier, vrf,
};
use transparency::{CallerRole, ClientToken, ClosedTypes, Rate, WitnessConfig};
use verifier::{IssuerSignature, TrustStore};

/// Text of an attacker: HTML, an ANSI sequence, a bidi override, a tag character, an address.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}\u{e0041}https://evil.example/";

/// What all pages are: HTML of this service only, never stored.
fn checked(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    checked_headers(answer);
    answer.text()
}

fn checked_headers(answer: &Answer) {
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(
        answer.header("content-security-policy"),
        Some(
            "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self' 'wasm-unsafe-eval'; \
             base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
    );
}

/// Reads a page and checks that it loads nothing and holds no raw text of an attacker.
async fn page(site: &Site, path: &str) -> String {
    let html = checked(&site.get(path).await);
    holds_no_raw_text(path, &html);
    html
}

/// Reads a page that refuses what was asked for, and checks it in the same way.
async fn refused_page(site: &Site, path: &str) -> String {
    let answer = site.get(path).await;
    assert_eq!(answer.status, 400, "{path}: {answer:?}");
    checked_headers(&answer);
    let html = answer.text();
    holds_no_raw_text(path, &html);
    html
}

#[track_caller]
fn holds_no_raw_text(path: &str, html: &str) {
    for raw in
        ["<script", "onerror=alert(1)>", "\u{1b}", "\u{202e}", "\u{e0041}", "href=\"https://evil", " style="]
    {
        assert!(!html.contains(raw), "{path} contains {raw:?}: {html}");
    }
}

/// Reads a page again and again until it has this text.
async fn page_with(site: &Site, path: &str, text: &str) -> String {
    checked(&answer_with(site, path, text).await)
}

/// Asks again and again until the answer has this text.
async fn answer_with(site: &Site, path: &str, text: &str) -> Answer {
    let found = async {
        loop {
            let answer = site.get(path).await;
            if answer.text().contains(text) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), found).await;
    found.unwrap_or_else(|_| panic!("{path} never has {text:?}"))
}

/// The address of a name below a path.
fn under(path: &str, name: &str) -> String {
    format!("{path}/{}", display::percent_encoded(name))
}

fn hostile_statement() -> SignedStatement {
    testkit::opaque(HOSTILE, &json!({ HOSTILE: HOSTILE }))
}

#[tokio::test]
async fn the_first_page_shows_the_state_and_the_newest_entries() {
    let site = Place::new().start().await;
    let statement = testkit::opaque("build/7", &json!({ "n": 1 }));
    site.registered(&statement).await;
    let root = site.get("/").await;
    assert_eq!((root.status, root.header("location")), (303, Some("/ui")));
    let html = page(&site, "/ui").await;
    let id = statement.digest().to_string();
    for part in
        [testkit::ORIGIN, "registers statements", "build/7", &format!("/ui/entries/{id}"), "Newest root"]
    {
        assert!(html.contains(part), "no {part}: {html}");
    }
    assert!(!html.contains("Alarm: "), "{html}");
    let style = site.get("/ui/style.css").await;
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert!(!style.text().contains("url("), "the stylesheet loads nothing");
}

#[tokio::test]
async fn a_search_lists_the_newest_entries_first_and_leads_on_and_shows_its_own_errors() {
    let site = Place::new().start().await;
    for n in 0..5 {
        site.registered(&testkit::opaque(&format!("build/{n}"), &json!({ "n": n }))).await;
    }
    let html = page(&site, "/ui/search?subject_prefix=build%2F&limit=2&issuer=&verdict=").await;
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    assert!(at("at leaf 5") < at("at leaf 4"));
    assert!(!html.contains("at leaf 3"));
    let next = "/ui/search?limit=2&amp;before=4&amp;order=newest&amp;subject_prefix=build%2F";
    assert!(html.contains(next), "{html}");
    let html = page(&site, &next.replace("&amp;", "&")).await;
    assert!(html.contains("at leaf 3") && !html.contains("at leaf 4"), "{html}");
    let html = page(&site, "/ui/search?order=oldest&limit=1").await;
    assert!(html.contains("at leaf 0") && html.contains("order=oldest"), "{html}");
    let html = refused_page(&site, "/ui/search?payload_digest=abc").await;
    for part in ["payload_digest is a SHA-256", "value=\"abc\"", "role=\"search\"", "The same as JSON"] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    assert!(page(&site, "/ui/search?subject=nothing").await.contains("No entry matches."));
}

#[tokio::test]
async fn the_fields_of_a_search_hold_the_query_as_it_was_sent_with_only_html_escaped() {
    let site = Place::new().start().await;
    let heart = "\u{2764}\u{fe0f}/1";
    site.registered(&testkit::opaque(heart, &json!({}))).await;
    site.registered(&hostile_statement()).await;
    let escaped = HOSTILE.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    for (subject, value) in [(heart, heart), (HOSTILE, &*escaped)] {
        let path = format!("/ui/search?subject_prefix={}", display::percent_encoded(subject));
        let html = checked(&site.get(&path).await);
        let field = format!("name=\"subject_prefix\" value=\"{value}\" ");
        assert!(html.contains(&field), "no {field:?}: {html}");
        assert!(html.contains("at leaf") && !html.contains("<script"), "{html}");
        let shown = html.split_once("<h2>Entries</h2>").unwrap().1;
        assert!(!shown.contains(['\u{fe0f}', '\u{202e}', '\u{1b}']), "rows show code points: {shown}");
    }
}

#[tokio::test]
async fn the_page_of_an_entry_shows_header_payload_policy_and_downloads() {
    let site = Place::new().start().await;
    let statement = testkit::opaque("build/7", &json!({ "answer": 42 }));
    site.registered(&statement).await;
    let id = statement.digest().to_string();
    let html = page(&site, &under("/ui/entries", &id)).await;
    for part in
        ["&quot;answer&quot;: 42", "cwt-claims", "JSON, indented", "the policy at leaf 0", "tabellion verify"]
    {
        assert!(html.contains(part), "no {part}: {html}");
    }
    let receipt = site.get(&format!("/ui/entries/{id}/receipt")).await;
    assert_eq!(receipt.header("content-type"), Some("application/cose"));
    site.verified(&statement, &receipt.body).await;
    let proof = page(&site, &format!("/ui/entries/{id}/proof")).await;
    let json = site.get(&format!("/v1/proof/inclusion?entry_id={id}")).await.json();
    for hash in json["path"].as_array().unwrap().iter().chain([&json["root"], &json["leaf_hash"]]) {
        assert!(proof.contains(hash.as_str().unwrap()), "no {hash}: {proof}");
    }
    let verification = format!("href=\"/ui/verify?entry={id}\"");
    assert!(html.contains(&verification), "{html}");
    assert!(proof.contains(&verification), "{proof}");
    assert_eq!(site.get(&format!("/v1/entries/{id}/transparent")).await.status, 200, "the page fetches this");
}

#[tokio::test]
async fn the_consistency_proof_of_two_sizes_is_drawn_with_every_hash_to_both_roots() {
    let site = Place::new().start().await;
    for n in 0..6 {
        site.registered(&testkit::opaque("thing", &json!({ "n": n }))).await;
    }
    let list = page_with(&site, "/ui/checkpoints", "Size 7").await;
    let root = |size: u64| {
        let row = list.split_once(&format!("/v1/checkpoints/{size}\"")).unwrap().1;
        row.split_once("root <code>").unwrap().1[..64].to_owned()
    };
    for (first, second) in [(2, 7), (3, 7), (4, 6), (6, 7)] {
        let query = format!("first={first}&second={second}");
        let html = page(&site, &format!("/ui/consistency?{query}")).await;
        let json = site.get(&format!("/v1/proof/consistency?{query}")).await.json();
        let path = json["path"].as_array().unwrap();
        for hash in path.iter().map(|hash| hash.as_str().unwrap()) {
            let given = format!("</small><code>{hash}</code>");
            assert!(html.contains(&given), "{query}: no {given}: {html}");
        }
        let hashes = format!("<dt>Hashes in the proof</dt><dd>{}, ", path.len());
        let signed = "The log signed a checkpoint with this root:";
        for part in [root(first), root(second), hashes, format!("--second {second} --verify")] {
            assert!(html.contains(&part), "{query}: no {part}: {html}");
        }
        assert_eq!(html.matches(signed).count(), 2, "{query}: {html}");
        for size in [first, second] {
            let link = format!("href=\"/ui/verify?checkpoint={size}\"");
            assert!(html.contains(&link), "{query}: no {link}: {html}");
        }
        let left_out = html.contains("the proof leaves out its root");
        assert_eq!(left_out, [2, 4].contains(&first), "{query}: {html}");
    }
}

#[tokio::test]
async fn the_page_of_checkpoints_asks_for_two_sizes_and_wrong_ones_are_named() {
    let site = Place::new().start().await;
    for n in 0..2 {
        site.registered(&testkit::opaque("thing", &json!({ "n": n }))).await;
    }
    let html = page_with(&site, "/ui/checkpoints", "Size 3").await;
    for part in [
        "action=\"/ui/consistency\"",
        "name=\"first\" min=\"1\" value=\"2\"",
        "name=\"second\" min=\"1\" value=\"3\"",
    ] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    for (query, reason) in [
        ("first=3&second=2", "no proof from 3 to 2: the first size is at least 1, and less than the second"),
        ("first=2&second=2", "no proof from 2 to 2"),
        ("first=0&second=2", "no proof from 0 to 2"),
        ("first=2&second=99", "the newest has size 3"),
        ("first=&second=2", "&quot;&quot; is not a tree size"),
        ("first=01&second=2", "&quot;01&quot; is not a tree size"),
        ("first=1&second=%3Cb%3E", "&quot;&lt;b&gt;&quot; is not a tree size"),
        ("first=1", "missing field `second`"),
        ("first=1&second=2&third=3", "unknown field `third`"),
    ] {
        let html = refused_page(&site, &format!("/ui/consistency?{query}")).await;
        assert!(html.contains(reason), "{query}: no {reason}: {html}");
    }
}

#[tokio::test]
async fn below_a_path_of_the_public_url_every_address_of_a_page_has_the_path() {
    let below = "https://log.example/of-2026";
    let site = Place::new().start_with(|config| config.public_url = below.to_owned()).await;
    let statements =
        [testkit::opaque("thing", &json!({ "n": 1 })), testkit::opaque("thing", &json!({ "n": 2 }))];
    for statement in &statements {
        assert_eq!(site.register(statement).await.status, 201);
    }
    for path in ["/", "/ui/"] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/of-2026/ui")), "{path}");
    }
    let id = statements[0].digest().to_string();
    let own = [
        "/ui",
        "/ui/search?limit=1",
        "/ui/policy",
        "/ui/consistency?first=1&second=2",
        &format!("/ui/entries/{id}"),
        &under("/ui/issuers", testkit::ISSUER),
    ];
    for path in own {
        let html = page(&site, path).await;
        has_the_path_everywhere(path, &html);
        let with_the_path = page(&site, &format!("/of-2026{path}")).await;
        assert!(
            with_the_path.contains("/of-2026/ui/style.css"),
            "also where no proxy removes the path: {path}"
        );
    }
    assert_eq!(site.get("/of-2026/ui/style.css").await.status, 200);
    assert_eq!(site.get(&format!("/of-2026/entries/{id}")).await.status, 200);
    assert_eq!(site.get("/of-2026more/ui").await.status, 404);
    let browser = [("accept", "text/html,*/*;q=0.8")];
    let absent = site.send(Method::GET, "/ui/nothing", &browser, "").await;
    assert_eq!(absent.status, 404);
    has_the_path_everywhere("an error", &absent.text());
    let to_documentation = site.get("/docs").await;
    assert_eq!((to_documentation.status, to_documentation.header("location")), (303, Some("docs/")));
    let documentation = site.get("/docs/swagger-initializer.js").await.text();
    assert!(documentation.contains("\"../openapi.json\""), "{documentation}");
}

/// Checks that every link and form of a page leads below `/of-2026`, to its own parts, or to nothing.
fn has_the_path_everywhere(path: &str, html: &str) {
    let mut addresses: Vec<&str> = Vec::new();
    for attribute in [" href=\"", " action=\"", " src=\""] {
        addresses.extend(html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()));
    }
    assert!(addresses.contains(&"/of-2026/ui/style.css"), "{path}: {html}");
    for address in addresses {
        let leads_below = ["/of-2026/", "#", "data:"].iter().any(|start| address.starts_with(start));
        assert!(leads_below, "{path} leads to {address}");
    }
}

#[tokio::test]
async fn the_page_of_an_erased_entry_has_commands_for_those_who_have_the_statement() {
    let site = Place::new().start().await;
    let statement = testkit::opaque("gone", &json!({}));
    site.registered(&statement).await;
    site.registered(&erasure(&[statement.digest()])).await;
    let id = statement.digest().to_string();
    let receipt = format!("/entries/{id}\ntabellion verify statement.cose --receipt statement.receipt");
    // The statement is erased in a moment after its erasure was registered.
    let html = page_with(&site, &under("/ui/entries", &id), &receipt).await;
    for part in ["<h2>Erased by</h2>", "Erasure at leaf 2"] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    for absent in ["/transparent", "/ui/verify?entry", "/ui/bundle"] {
        assert!(!html.contains(absent), "{absent}: {html}");
    }
    assert_eq!(site.get(&format!("/ui/bundle?entry={id}")).await.status, 410);
}

#[tokio::test]
async fn a_verdict_and_an_audit_record_lead_to_the_timeline_of_their_session() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let mut refusal = verdict_json();
    refusal["session_id"] = "none".into();
    let with_session = [verdict(&verdict_json()), audit_record(&decision_json(SESSION, 0))];
    let without_session = [verdict(&refusal), audit_record(&audit_json("closed", "unbound:1", 0))];
    let link =
        format!("<dt>Session</dt><dd><a href=\"{0}\">{SESSION}</a></dd>", under("/ui/sessions", SESSION));
    for statement in with_session {
        site.registered(&statement).await;
        let html = page(&site, &under("/ui/entries", &statement.digest().to_string())).await;
        assert!(html.contains(&link), "no {link}: {html}");
        let timeline = page(&site, &under("/ui/sessions", SESSION)).await;
        assert!(timeline.contains(&statement.digest().to_string()), "{timeline}");
    }
    for statement in without_session {
        site.registered(&statement).await;
        let html = page(&site, &under("/ui/entries", &statement.digest().to_string())).await;
        assert!(!html.contains("<dt>Session</dt>"), "{html}");
    }
}

#[tokio::test]
async fn a_browser_that_opens_the_address_of_an_entry_is_led_to_its_page_and_a_client_gets_the_receipt() {
    let site = Place::new().start().await;
    let statement = testkit::opaque("build/7", &json!({}));
    site.registered(&statement).await;
    let path = format!("/entries/{}", statement.digest());
    let ask = async |accept: &str| site.send(Method::GET, &path, &[("accept", accept)], "").await;
    let browser = ask("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8").await;
    let expected = format!("{}/ui{path}", site.url);
    assert_eq!((browser.status, browser.header("location")), (303, Some(&*expected)));
    assert_eq!(browser.header("vary"), Some("accept"));
    for accept in ["application/cose", "*/*", "application/scitt-receipt+cose, text/html;q=0.5"] {
        let answer = ask(accept).await;
        assert_eq!((answer.status, answer.header("vary")), (200, Some("accept")), "{accept}");
    }
}

#[tokio::test]
async fn text_of_an_attacker_stays_text_on_every_page() {
    let site = Place::new().start().await;
    let hostile = hostile_statement();
    let text = StatementBuilder::new(HOSTILE)
        .content_type("text/plain")
        .kid(testkit::KID)
        .iss(testkit::ISSUER)
        .sub(HOSTILE)
        .sign(&testkit::es256())
        .unwrap();
    let other = testkit::ed25519([7; 32]);
    let verified = receipt(1).unchained().sign(&other).unwrap();
    for statement in [&hostile, &text, &verified] {
        site.registered(statement).await;
    }
    let mut paths = vec!["/ui".to_owned(), "/ui/search".into(), "/ui/alarms".into(), "/ui/policy".into()];
    paths.push(format!("/ui/search?subject={}", display::percent_encoded(HOSTILE)));
    paths.push(under("/ui/issuers", testkit::ISSUER));
    let did = other.public_key().did_key();
    paths.push(format!("{}/chain?sub={}", under("/ui/issuers", &did), display::percent_encoded(AGENT)));
    paths.extend([&hostile, &text, &verified].map(|one| under("/ui/entries", &one.digest().to_string())));
    for path in paths {
        page(&site, &path).await;
    }
    let html = page(&site, &under("/ui/entries", &text.digest().to_string())).await;
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("\\u{202e}"), "{html}");
    refused_page(&site, &format!("/ui/search?{0}={0}", display::percent_encoded(HOSTILE))).await;
    for path in [under("/ui/sessions", HOSTILE), under("/ui/issuers", HOSTILE), under("/ui", HOSTILE)] {
        let answer = site.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        checked_headers(&answer);
        assert!(!answer.text().contains("<script"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_session_is_a_timeline_and_a_missing_record_is_a_gap() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    for seq in [0, 3] {
        site.registered(&audit_record(&decision_json(SESSION, seq))).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    for part in ["records 1 to 2", "2 missing", "not closed", "read_file", "Audit record at leaf 1"] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    let at = |text: &str| html.find(text).unwrap();
    assert!(at("at leaf 1") < at("records 1 to 2") && at("records 1 to 2") < at("at leaf 2"));
}

#[tokio::test]
async fn a_session_whose_name_is_dots_is_reached_by_the_links_to_it() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    for session in [".", ".."] {
        let records: Vec<SignedStatement> =
            (0..3).map(|seq| audit_record(&decision_json(session, seq))).collect();
        for record in &records {
            site.registered(record).await;
        }
        let ids: Vec<String> = records.iter().map(|record| record.digest().to_string()).collect();
        let address = format!("/ui/sessions?session={session}");
        let entry = page(&site, &under("/ui/entries", &ids[0])).await;
        let link = format!("<a href=\"{address}\">{session}</a>");
        assert!(entry.contains(&link), "no {link}: {entry}");
        let whole = page(&site, &address).await;
        assert!(ids.iter().all(|id| whole.contains(id)) && whole.contains("none missing"), "{whole}");
        let first = page(&site, &format!("{address}&limit=2")).await;
        assert!(first.contains(&ids[1]) && !first.contains(&ids[2]), "{first}");
        let next = first.split_once("rel=\"next\" href=\"").unwrap().1.split_once('"').unwrap().0;
        let second = page(&site, &next.replace("&amp;", "&")).await;
        assert!(second.contains(&ids[2]) && !second.contains(&ids[0]), "{second}");
    }
    refused_page(&site, "/ui/sessions").await;
    assert_eq!(site.get("/ui/sessions?session=nobody").await.status, 404);
}

#[tokio::test]
async fn records_of_a_stream_are_in_the_order_of_their_numbers_whatever_their_leaves() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let records: Vec<_> = (0..5).map(|seq| audit_record(&decision_json(SESSION, seq))).collect();
    for seq in [3, 0, 4, 1] {
        site.registered(&records[seq]).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    let of_record = |seq: usize| html.find(&format!("/ui/entries/{}", records[seq].digest()));
    let gap = html.find("Gap: record 2 of the stream");
    let places = [of_record(0), of_record(1), gap, of_record(3), of_record(4)];
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {html}");
}

#[tokio::test]
async fn a_long_name_of_a_tool_in_a_row_is_cut_and_shown_to_be_cut() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    for (seq, length, shown) in [(0, 200, "t".repeat(200)), (1, 201, format!("{}…", "t".repeat(200)))] {
        let mut decision = decision_json(SESSION, seq);
        decision["tool"] = "t".repeat(length).into();
        site.registered(&audit_record(&decision)).await;
        let html = page(&site, &under("/ui/sessions", SESSION)).await;
        assert!(html.contains(&format!("tool <b>{shown}</b>")), "{html}");
    }
}

#[tokio::test]
async fn a_commitment_and_the_end_of_its_stream_are_in_the_timeline() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let mut commitment = decision_json(SESSION, 0);
    commitment["kind"] = "commitment".into();
    commitment["committed"] = json!({ "goal": COMMITMENT });
    commitment.as_object_mut().unwrap().remove("tool");
    let commitment = audit_record(&commitment);
    let decision = audit_record(&decision_json(SESSION, 1));
    let outcome = audit_record(&outcome_json(SESSION, 2, &decision.digest()));
    let closed = audit_record(&audit_json("closed", SESSION, 3));
    for statement in [&commitment, &decision, &outcome, &closed] {
        site.registered(statement).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    let shown = item(&html, &commitment);
    for part in ["Audit record at leaf 1", "kind <b>commitment</b>", "seq <b>0</b>", "verdict <b>served</b>"]
    {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    assert!(!shown.contains("No outcome"), "a commitment has none: {shown}");
    assert!(item(&html, &closed).contains("kind <b>closed</b>"), "{html}");
    assert!(html.contains("4 records, ") && html.contains("0 decisions without outcome, closed"), "{html}");
}

/// A record of the conversation of [`SESSION`], after another one.
fn record_after(n: u64, previous: Option<&SignedStatement>) -> SignedStatement {
    let mut record = conversation_json(n);
    record["session"]["session-id"] = SESSION.into();
    if let Some(previous) = previous {
        record["previous-record"] = digest_of(previous).into();
    }
    conversation_of(record.to_string().into_bytes(), SESSION).sign(&recorder()).unwrap()
}

/// The digest of a record, as the next one names it.
fn digest_of(record: &SignedStatement) -> String {
    format!("sha256:{}", EntryDigest::of(record.payload().unwrap()))
}

#[tokio::test]
async fn a_record_whose_previous_record_is_missing_or_has_another_follower_is_drawn_so() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let first = record_after(1, None);
    let lost = record_after(2, Some(&first));
    let third = record_after(3, Some(&lost));
    let fourth = record_after(4, Some(&third));
    let fork = record_after(5, Some(&third));
    let late = record_after(6, None);
    let early = record_after(7, Some(&late));
    for statement in [&first, &third, &fourth, &fork, &early, &late] {
        site.registered(statement).await;
    }
    let path = under("/ui/sessions", SESSION);
    let html = page(&site, &path).await;
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    let missing = format!("<code>{}</code>, is not on the log, or was erased", digest_of(&lost));
    let order = [
        "at leaf 1</a>",
        &missing,
        "at leaf 2</a>",
        "at leaf 3</a>",
        "follows the same record as the one at leaf 3 does",
        "at leaf 4</a>",
        "was registered after it, at leaf 6",
        "at leaf 5</a>",
        "at leaf 6</a>",
    ]
    .map(at);
    assert!(order.is_sorted(), "{order:?}: {html}");
    assert_eq!(html.matches("<li class=\"gap\">").count(), 3, "no other record is out of its place: {html}");
    let alone = page(&site, &format!("{path}?after=2&limit=1")).await;
    assert!(alone.contains("at leaf 3</a>") && !alone.contains("class=\"gap\""), "{alone}");
    let alone = page(&site, &format!("{path}?after=3&limit=1")).await;
    assert!(alone.contains("follows the same record as the one at leaf 3 does"), "{alone}");
}

/// The first record of the conversation of [`SESSION`], in a statement of its own for each number.
fn copy_of_first(number: u64) -> SignedStatement {
    let mut record = conversation_json(1);
    record["session"]["session-id"] = SESSION.into();
    let statement = conversation_of(record.to_string().into_bytes(), SESSION);
    statement.claim(-70_000, number.into()).sign(&recorder()).unwrap()
}

#[tokio::test]
async fn a_record_that_was_registered_again_is_no_fork() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let copies = [copy_of_first(1), copy_of_first(2)];
    let after = |n: u64| record_after(n, Some(&copies[0]));
    for statement in copies.iter().chain(&[after(2), after(3)]) {
        site.registered(statement).await;
    }
    let path = under("/ui/sessions", SESSION);
    let html = page(&site, &format!("{path}?after=2&limit=1")).await;
    assert!(html.contains("at leaf 3</a>") && !html.contains("class=\"gap\""), "{html}");
    let html = page(&site, &format!("{path}?after=3&limit=1")).await;
    assert!(html.contains("follows the same record as the one at leaf 3 does"), "{html}");
}

#[tokio::test]
async fn a_later_copy_of_the_previous_record_is_not_out_of_order() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let copies = [copy_of_first(1), copy_of_first(2)];
    for statement in [&copies[0], &record_after(2, Some(&copies[0])), &copies[1]] {
        site.registered(statement).await;
    }
    let html = page(&site, &format!("{}?after=1", under("/ui/sessions", SESSION))).await;
    assert!(html.contains("at leaf 2</a>") && html.contains("at leaf 3</a>"), "{html}");
    assert!(!html.contains("at leaf 1</a>") && !html.contains("class=\"gap\""), "{html}");
}

#[tokio::test]
async fn a_following_record_that_was_registered_again_is_no_fork() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let first = record_after(1, None);
    let second = record_after(2, Some(&first));
    let again = conversation_of(second.payload().unwrap().to_vec(), SESSION);
    let again = again.claim(-70_000, 1u64.into()).sign(&recorder()).unwrap();
    for statement in [&first, &second, &again] {
        site.registered(statement).await;
    }
    let path = under("/ui/sessions", SESSION);
    for address in [path.clone(), format!("{path}?after=2&limit=1")] {
        let html = page(&site, &address).await;
        assert!(html.contains("at leaf 3</a>") && !html.contains("class=\"gap\""), "{address}: {html}");
    }
}

#[tokio::test]
async fn whether_a_record_has_a_follower_is_not_looked_up_among_many_copies_of_it() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    for number in 1..=9 {
        site.registered(&copy_of_first(number)).await;
    }
    site.registered(&record_after(2, Some(&copy_of_first(1)))).await;
    let html = page(&site, &format!("{}?after=9&limit=1", under("/ui/sessions", SESSION))).await;
    assert!(html.contains("at leaf 10</a>") && html.contains("was not looked up"), "{html}");
}

#[tokio::test]
async fn a_page_looks_up_a_bounded_number_of_previous_records_and_says_which_it_did_not() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    for n in 0..130 {
        let unregistered = record_after(1000 + n, None);
        site.registered(&record_after(n, Some(&unregistered))).await;
    }
    let html = page(&site, &format!("{}?limit=200", under("/ui/sessions", SESSION))).await;
    let found =
        ["is not on the log, or was erased", "was not looked up"].map(|text| html.matches(text).count());
    assert_eq!(found, [128, 2], "{html}");
}

/// Reads the evidence bundle that a page offers.
#[track_caller]
fn offered(answer: &Answer, file: &str) -> EvidenceBundle {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some(bundle::MEDIA_TYPE));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let expected = format!("attachment; filename=\"{file}\"");
    assert_eq!(answer.header("content-disposition"), Some(&*expected));
    EvidenceBundle::parse(&answer.body).unwrap()
}

/// Verifies a bundle by the keys of the log that it claims. Issuers whose names are their keys are verified, as only a
/// signature binds a detached payload; the signatures of the others are left to the log.
fn verdict_on(bundle: &EvidenceBundle) -> BundleVerdict {
    let mut trust = TrustStore::from_toml(&bundle.claims.trust).unwrap();
    (trust.self_certified, trust.issuer_signature) = (true, IssuerSignature::LeftToLog);
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap();
    bundle.verify(&trust, None, now)
}

#[tokio::test]
async fn an_entry_is_offered_as_a_bundle_that_verifies_with_its_payload_and_its_policy() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    site.registered(&testkit::opaque("another", &json!({}))).await;
    let detached = conversation_builder(1, Form::Json).detached().sign(&recorder()).unwrap();
    let content = conversation_json(1).to_string().into_bytes();
    assert_eq!(site.post_form(detached.bytes(), &content).await.status, 201);
    let policy: EntryDigest =
        site.get("/v1/policy").await.json()["entry_id"].as_str().unwrap().parse().unwrap();
    for (id, payload) in [(detached.digest(), Some(content)), (policy, None)] {
        let html = page(&site, &under("/ui/entries", &id.to_string())).await;
        let link = format!("href=\"/ui/bundle?entry={id}\" download=\"{id}.bundle\"");
        assert!(html.contains(&link), "no {link}: {html}");
        let bundle = offered(&site.get(&format!("/ui/bundle?entry={id}")).await, &format!("{id}.bundle"));
        let [entry] = &bundle.entries[..] else { panic!("{:?}", bundle.entries) };
        assert_eq!((EntryDigest::of(&entry.statement), &entry.payload), (id, &payload));
        let policies: Vec<EntryDigest> =
            bundle.policies.iter().map(|policy| EntryDigest::of(&policy.statement)).collect();
        assert_eq!((policies, bundle.selections.len()), (vec![policy], 0));
        let verdict = verdict_on(&bundle);
        assert!(verdict.is_verified(), "{verdict:#?}");
    }
}

#[tokio::test]
async fn a_bundle_has_the_receipt_of_the_registration() {
    let site = Place::new().start().await;
    let one = testkit::opaque("one", &json!({}));
    let receipt = site.registered(&one).await;
    site.registered(&testkit::opaque("another", &json!({}))).await;
    let id = one.digest();
    let bundle = offered(&site.get(&format!("/ui/bundle?entry={id}")).await, &format!("{id}.bundle"));
    assert_eq!(bundle.entries[0].receipt, receipt.bytes()[..]);
}

#[tokio::test]
async fn a_session_is_offered_as_a_bundle_that_verifies_and_holds_all_that_the_page_lists() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let mut execution = aer_json(1);
    execution["session"]["session_id"] = SESSION.into();
    execution["action"]["input_hash"] = receipt_json(1)["hashes"]["output"].clone();
    let statements = [
        audit_record(&decision_json(SESSION, 0)),
        aer_statement(execution).sign(&gateway()).unwrap(),
        vrf(1),
    ];
    for statement in &statements {
        site.registered(statement).await;
    }
    site.registered(&testkit::opaque("another", &json!({}))).await;
    let detached = conversation_builder(1, Form::Json).detached().sign(&recorder()).unwrap();
    let content = conversation_json(1).to_string().into_bytes();
    assert_eq!(site.post_form(detached.bytes(), &content).await.status, 201);

    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    for address in ["/ui/verify?session=session-1", "/ui/bundle?session=session-1"] {
        assert!(html.contains(&format!("href=\"{address}\"")), "no {address}: {html}");
    }
    let bundle = offered(&site.get("/ui/bundle?session=session-1").await, "session.bundle");
    let held: Vec<Vec<u8>> = bundle.entries.iter().map(|entry| entry.statement.clone()).collect();
    let expected: Vec<Vec<u8>> =
        statements.iter().chain([&detached]).map(|statement| statement.bytes().to_vec()).collect();
    assert_eq!(held, expected);
    let payloads: Vec<bool> = bundle.entries.iter().map(|entry| entry.payload.is_some()).collect();
    assert_eq!(payloads, [false, false, false, true], "only the detached payload is an extra part");
    assert_eq!(bundle.policies.len(), 1);
    let [selection] = &bundle.selections[..] else { panic!("{:?}", bundle.selections) };
    let ids: Vec<EntryDigest> = statements.iter().chain([&detached]).map(SignedStatement::digest).collect();
    assert_eq!((&*selection.name, &selection.entries), (SESSION, &ids));
    assert_eq!(bundle.claims.log_url, site.service.identity().public_url);
    let verdict = verdict_on(&bundle);
    assert!(verdict.is_verified(), "{verdict:#?}");
}

#[tokio::test]
async fn a_chain_a_checkpoint_and_a_policy_lead_to_the_verifier_with_what_it_can_check() {
    let site = Place::new().start().await;
    let first = receipt(1).sign(&verifier()).unwrap();
    let second = receipt(2).after(first.digest(), 1).sign(&verifier()).unwrap();
    for statement in [&first, &second] {
        site.registered(statement).await;
    }
    let (did, agent) = (verifier().public_key().did_key(), display::percent_encoded(AGENT));
    let query = format!("issuer={}&sub={agent}", display::percent_encoded(&did));
    let html = page(&site, &format!("{}/chain?sub={agent}", under("/ui/issuers", &did))).await;
    let in_html = query.replace('&', "&amp;");
    for address in [format!("/ui/verify?{in_html}"), format!("/ui/bundle?{in_html}")] {
        assert!(html.contains(&format!("href=\"{address}\"")), "no {address}: {html}");
    }
    let chain = offered(&site.get(&format!("/ui/bundle?{query}")).await, "chain.bundle");
    let held: Vec<&[u8]> = chain.entries.iter().map(|entry| entry.statement.as_slice()).collect();
    assert_eq!(held, [&first.bytes()[..], &second.bytes()[..]]);
    assert!(chain.selections.is_empty() && verdict_on(&chain).is_verified(), "{:#?}", verdict_on(&chain));

    let html = page_with(&site, "/ui/checkpoints", "Size 2").await;
    assert!(html.contains("href=\"/ui/verify?checkpoint=2\""), "{html}");
    let checkpoint = site.get("/v1/checkpoints/2").await;
    assert!(checkpoint.status == 200 && checkpoint.text().starts_with(testkit::ORIGIN), "{checkpoint:?}");

    let policy = site.get("/v1/policy").await.json()["entry_id"].as_str().unwrap().to_owned();
    let html = page(&site, "/ui/policy").await;
    assert!(html.contains(&format!("href=\"/ui/verify?entry={policy}\"")), "{html}");
    assert_eq!(site.get(&format!("/v1/entries/{policy}/transparent")).await.status, 200);
}

#[tokio::test]
async fn a_bundle_is_for_those_who_may_read_all_of_it() {
    const TOKEN: &str = "auditor-of-the-tests";
    let site = Place::new()
        .start_with(|config| {
            let token = ClientToken { role: Some(CallerRole::Auditor), ..ClientToken::new(TOKEN, TOKEN) };
            config.access.tokens = vec![token];
            config.limits.page = 2;
        })
        .await;
    let records: Vec<SignedStatement> =
        (0..3).map(|seq| audit_record(&decision_json(SESSION, seq))).collect();
    for record in &records {
        site.registered(record).await;
    }
    let (path, bundle) = (under("/ui/sessions", SESSION), "/ui/bundle?session=session-1");
    assert!(!page(&site, &path).await.contains(bundle), "audit records are closed to this caller");
    let refused = site.get(bundle).await;
    assert_eq!(refused.status, 401);
    checked_headers(&refused);
    let authorization = format!("Bearer {TOKEN}");
    let ask = async |path: &str| site.send(Method::GET, path, &[("authorization", &authorization)], "").await;
    assert!(checked(&ask(&path).await).contains(bundle));
    let whole = offered(&ask(bundle).await, "session.bundle");
    assert_eq!(whole.entries.len(), 3, "also those after the first page");
    let id = records[1].digest().to_string();
    let (path, bundle) = (under("/ui/entries", &id), format!("/ui/bundle?entry={id}"));
    assert!(!page(&site, &path).await.contains("/ui/bundle"), "the record is closed to this caller");
    assert_eq!(site.get(&bundle).await.status, 401);
    assert!(checked(&ask(&path).await).contains(&bundle));
    let alone = offered(&ask(&bundle).await, &format!("{id}.bundle"));
    assert_eq!(alone.entries.len(), 1);
    let unknown = format!("entry={}", "0".repeat(64));
    let both = format!("entry={id}&session=session-1");
    for (query, status) in [
        ("session=nobody", 404),
        ("issuer=nobody&sub=nothing", 404),
        (unknown.as_str(), 404),
        ("entry=abc", 400),
        (both.as_str(), 400),
        ("session=session-1&issuer=a&sub=b", 400),
        ("issuer=a", 400),
        ("agent=a", 400),
        ("", 400),
    ] {
        assert_eq!(ask(&format!("/ui/bundle?{query}")).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_session_of_more_entries_than_a_bundle_may_have_is_refused_with_the_command() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let records: Vec<SignedStatement> =
        (0..1001).map(|seq| audit_record(&decision_json(SESSION, seq))).collect();
    for some in records.chunks(100) {
        let answers = futures::future::join_all(some.iter().map(|record| site.register(record))).await;
        assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    }
    let large = site.get("/ui/bundle?session=session-1").await;
    assert_eq!(large.status, 409);
    checked_headers(&large);
    for part in ["bundle-too-large", "at most 1000 entries", "tabellion bundle NAME -o FILE"] {
        assert!(large.text().contains(part), "no {part}: {}", large.text());
    }
}

/// Reads of this client that the rate limit still admits at once.
fn left(answer: &Answer) -> u32 {
    let (_, left) = answer.header("ratelimit").unwrap().rsplit_once("r=").unwrap();
    left.parse().unwrap()
}

#[tokio::test]
async fn a_bundle_counts_as_one_more_read_for_each_sixteen_of_its_entries_and_policies() {
    let reads = Rate { period: Duration::from_secs(3_600), ..Rate::per_second(1, 1000) };
    let site = Place::new().start_with(|config| config.limits.reads = reads).await;
    let mut chain: Vec<SignedStatement> = Vec::new();
    for n in 0..31 {
        let placed = match chain.last() {
            Some(previous) => receipt(n).after(previous.digest(), n),
            None => receipt(n),
        };
        chain.push(placed.sign(&verifier()).unwrap());
        site.registered(&chain[chain.len() - 1]).await;
    }
    let issuer = display::percent_encoded(&verifier().public_key().did_key());
    let query = format!("issuer={issuer}&sub={}", display::percent_encoded(AGENT));
    let offers = site.get(&format!("/ui/bundle?{query}")).await;
    let bundle = offered(&offers, "chain.bundle");
    assert_eq!((bundle.entries.len(), bundle.policies.len()), (31, 1));
    let next = site.get("/ui/status").await;
    assert_eq!(left(&offers) - left(&next), 1 + 32 / 16);
}

#[tokio::test]
async fn bundles_that_are_asked_for_at_the_same_time_are_all_served() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    site.registered(&audit_record(&decision_json(SESSION, 0))).await;
    let asked = (0..16).map(|_| site.get("/ui/bundle?session=session-1"));
    for answer in futures::future::join_all(asked).await {
        assert_eq!(offered(&answer, "session.bundle").entries.len(), 1);
    }
}

/// What a page shows of an entry in a list: its link, and what follows it.
#[track_caller]
fn item<'a>(html: &'a str, statement: &SignedStatement) -> &'a str {
    let link = format!("<a href=\"/ui/entries/{}\">", statement.digest());
    let start = html.find(&link).unwrap_or_else(|| panic!("no {link}: {html}"));
    html[start..].split("</li>").next().unwrap()
}

#[tokio::test]
async fn a_session_shows_each_entry_with_type_time_and_link_and_a_decision_without_outcome_as_such() {
    let site = Place::new().start_with(|config| config.access.closed_types = ClosedTypes(Vec::new())).await;
    let answered = audit_record(&decision_json(SESSION, 0));
    let outcome = audit_record(&outcome_json(SESSION, 1, &answered.digest()));
    let unanswered = audit_record(&decision_json(SESSION, 2));
    let mut execution = aer_json(1);
    execution["session"]["session_id"] = SESSION.into();
    execution["action"]["input_hash"] = receipt_json(1)["hashes"]["output"].clone();
    let shown = [
        (conversation(1, Form::Json), "Conversation at leaf 1", "entries <b>"),
        (answered, "Audit record at leaf 2", "verdict <b>served</b>"),
        (outcome, "Audit record at leaf 3", "status <b>executed</b>"),
        (unanswered, "Audit record at leaf 4", "seq <b>2</b>"),
        (verdict(&verdict_json()), "Verdict at leaf 5", "verdict <b>served</b>"),
        (
            aer_statement(execution).sign(&gateway()).unwrap(),
            "Execution receipt at leaf 6",
            "decision <b>permit</b>",
        ),
        (vrf(1), "Verification receipt at leaf 7", "verdict <b>pass</b>"),
    ];
    for (statement, ..) in &shown {
        site.registered(statement).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    for (statement, name, detail) in &shown {
        let item = item(&html, statement);
        for part in [*name, *detail, "</a> <time datetime=\"20"] {
            assert!(item.contains(part), "no {part}: {item}");
        }
    }
    let lacking = "No outcome of this decision is on the log";
    assert_eq!(html.matches(lacking).count(), 1, "{html}");
    assert!(item(&html, &shown[3].0).contains(lacking), "{html}");
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    assert!(at("Execution receipt at leaf 6") < at("Verification receipts about its outputs"));
    assert!(at("Verification receipts about its outputs") < at("Verification receipt at leaf 7"));
    assert!(html.contains("none missing") && html.contains("1 decision without outcome"), "{html}");
}

#[tokio::test]
async fn under_an_execution_receipt_stand_the_hops_of_its_chain_each_with_what_it_lost() {
    let site = Place::new().start().await;
    // An envelope has no controls.
    let hostile = HOSTILE.replace('\u{1b}', "");
    let root = root(|members| {
        let scope = &mut members["authorized_scope"];
        scope["budget_ceiling"] = 10.into();
        scope["budget_unit"] = hostile.clone().into();
        scope["capabilities"] = json!(["mcp:crm.*", format!("mcp:mail.{hostile}")]);
    });
    let narrow = delegated(&root, |members| {
        let scope = &mut members["delegated_scope"];
        scope["capabilities"] = json!(["mcp:crm.crm.read"]);
        scope["budget_ceiling"] = json!(2.5);
        scope["budget_unit"] = hostile.clone().into();
    });
    let wide =
        delegated(&narrow, |members| members["delegated_scope"]["capabilities"] = json!(["mcp:crm.pay"]));
    let unregistered = delegated(&root, |_| ());
    let statements = [
        chain_statement(&narrow),
        receipt_under(&narrow, SESSION, 1),
        receipt_under(&narrow, SESSION, 2),
        receipt_under(&unregistered, SESSION, 3),
        chain_statement(&wide),
        receipt_under(&wide, SESSION, 4),
    ];
    for statement in &statements {
        site.registered(statement).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    let gap = format!("<code>{}</code> is not on the log", unregistered.digest());
    let order = [
        "at leaf 2",
        &format!("Hop 0: {}", AGENTS[0]),
        "further delegations <b>4</b>",
        &format!("Hop 1: {}", AGENTS[1]),
        "mcp:crm.crm.read",
        "without ",
        "further delegations <b>3</b>, before <s>4</s>",
        "budget <b>2.5 ",
        "at leaf 3",
        "that of the receipt at leaf 2, above",
        "at leaf 4",
        &gap,
        "at leaf 6",
        &format!("Hop 2: {}", AGENTS[2]),
        "Declares more than the hop before: scope_expansion_violation",
    ]
    .map(at);
    assert!(order.is_sorted(), "{order:?}: {html}");
    let entry = |statement: &SignedStatement| format!("href=\"/ui/entries/{}\"", statement.digest());
    let links = [&statements[0], &statements[4]].map(|chain| html.matches(&entry(chain)).count());
    assert_eq!(links, [2, 3], "every hop leads to the entry of its chain");
    let alone = page(&site, &under("/ui/entries", &statements[0].digest().to_string())).await;
    for part in ["Delegation chain", "JSON, indented", "&quot;delegated_agent&quot;"] {
        assert!(alone.contains(part), "no {part}: {alone}");
    }
}

#[tokio::test]
async fn a_chain_whose_content_is_closed_or_unknown_is_a_gap() {
    let closed = ClosedTypes(vec!["application/agentroa-chain+json".to_owned()]);
    let site = Place::new().start_with(|config| config.access.closed_types = closed).await;
    let chain = root(|_| ());
    let mut redacted = aer_json(2);
    redacted["session"]["session_id"] = SESSION.into();
    let statements = [
        chain_statement(&chain),
        receipt_under(&chain, SESSION, 1),
        aer_statement(redacted).about_session().redacted().sign(&gateway()).unwrap(),
    ];
    for statement in &statements {
        site.registered(statement).await;
    }
    let html = page(&site, &under("/ui/sessions", SESSION)).await;
    assert!(html.contains("whose content is not shown here") && !html.contains("Hop 0"), "{html}");
    assert!(html.contains("so its delegation chain is unknown"), "{html}");
}

#[tokio::test]
async fn a_page_draws_a_bounded_number_of_chains_and_says_that_others_are_left_out() {
    let site = Place::new().start().await;
    for n in 0..10 {
        let chain = root(|_| ());
        site.registered(&chain_statement(&chain)).await;
        site.registered(&receipt_under(&chain, SESSION, n)).await;
    }
    let path = under("/ui/sessions", SESSION);
    let html = page(&site, &path).await;
    assert_eq!([html.matches("Hop 0: ").count(), html.matches("is left out").count()], [8, 2], "{html}");
    let html = page(&site, &format!("{path}?limit=10&after=16")).await;
    assert_eq!([html.matches("Hop 0: ").count(), html.matches("is left out").count()], [2, 0], "{html}");
}

#[tokio::test]
async fn an_issuer_has_its_numbers_and_its_chain_with_forks() {
    let site = Place::new().start().await;
    let first = receipt(1).sign(&verifier()).unwrap();
    let second = receipt(2).after(first.digest(), 1).sign(&verifier()).unwrap();
    let fork = receipt(3).after(first.digest(), 1).sign(&verifier()).unwrap();
    site.registered(&first).await;
    site.registered(&second).await;
    assert_eq!(site.register(&fork).await.status, 400);
    let did = verifier().public_key().did_key();
    let html = page(&site, &under("/ui/issuers", &did)).await;
    assert!(html.contains("application/vrf+") && html.contains(&second.digest().to_string()), "{html}");
    let chain = format!("{}/chain?sub={}", under("/ui/issuers", &did), display::percent_encoded(AGENT));
    let html = page(&site, &chain).await;
    for part in ["Receipt 0 at leaf 1", "Receipt 1 at leaf 2", "Refused fork", &fork.digest().to_string()] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    let alarms = page(&site, "/ui/alarms").await;
    assert!(
        alarms.contains(&fork.digest().to_string()) && alarms.contains("No contradiction of"),
        "{alarms}"
    );
}

#[tokio::test]
async fn the_pages_say_that_registration_stopped_without_space_or_a_pin() {
    let place = Place::new();
    let site = place.start().await;
    site.registered(&testkit::opaque("build/7", &json!({ "n": 1 }))).await;
    site.service.stop().await;
    let site = place.start_with(|config| config.limits.min_free_bytes = u64::MAX).await;
    for path in ["/ui", "/ui/status"] {
        let html = page(&site, path).await;
        assert!(html.contains("registration stopped"), "{path}: {html}");
    }
    site.service.stop().await;
    for file in std::fs::read_dir(place.path("state")).unwrap().map(Result::unwrap) {
        if file.file_name().to_string_lossy().starts_with("pin.") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let site = place.start().await;
    page_with(&site, "/ui", "registration stopped").await;
    page_with(&site, "/ui/status", "registration stopped").await;
}

/// Makes a log of two entries, stops it, and replaces its pin by one with another root of that size. Returns the root in
/// the pin, and the one in the database.
async fn contradict_the_pin(place: &Place) -> [RootHash; 2] {
    let site = place.start().await;
    site.registered(&testkit::opaque("build/7", &json!({ "n": 1 }))).await;
    site.service.stop().await;
    let file = PinFile::in_directory(place.path("state"));
    let signed = file.read().unwrap().unwrap();
    let other = Pin { root: RootHash::from_bytes([7; 32]), ..signed.clone() };
    std::fs::remove_file(place.path(&format!("state/pin.{}", signed.epoch))).unwrap();
    file.claim(&other).unwrap();
    [other.root, signed.root]
}

/// What the page of alarms shows of the tree from this source.
#[track_caller]
fn tree<'a>(html: &'a str, source: &str) -> &'a str {
    let heading = format!("<h3>{source}</h3>");
    let start = html.find(&heading).unwrap_or_else(|| panic!("no {heading}: {html}"));
    html[start..].split("<h3>").nth(1).unwrap_or_default()
}

#[tokio::test]
async fn a_database_that_contradicts_the_pin_is_an_alarm_with_both_roots_and_a_banner_on_other_pages() {
    let place = Place::new();
    let [pinned, stored] = contradict_the_pin(&place).await;
    let site = place.start().await;
    let alarms = site.alarms_with("Sequencing stopped").await;
    let halt = format!("at size 2 this log has signed root {pinned}, the database has root {stored}");
    for part in [&*halt, "Do not rely on new receipts", "Checkpoints that disagree"] {
        assert!(alarms.contains(part), "no {part}: {alarms}");
    }
    let [pin, database] = ["Pin", "Database"].map(|source| tree(&alarms, source));
    assert!(pin.contains(&pinned.to_string()) && pin.contains("not known to this page"), "{pin}");
    for part in
        [&*stored.to_string(), "<dt>Size</dt><dd>2</dd>", "this log's, valid", "<pre", "<time datetime=\"20"]
    {
        assert!(database.contains(part), "no {part}: {database}");
    }
    assert!(!alarms.contains("signed both roots"), "the pin has no signature: {alarms}");
    assert!(!alarms.contains("No contradiction of"), "{alarms}");
    for path in ["/ui", "/ui/growth", "/ui/status", "/ui/alarms"] {
        let html = page(&site, path).await;
        for part in ["role=\"alert\"", "Alarm: </strong>This log stopped signing", "href=\"/ui/alarms\""] {
            assert!(html.contains(part), "{path}: no {part}: {html}");
        }
    }
    assert!(page(&site, "/ui/status").await.contains("registration stopped"));
}

#[tokio::test]
async fn findings_of_the_storage_check_are_listed_as_text_and_counted_in_the_banner() {
    let place = Place::new();
    contradict_the_pin(&place).await;
    // A process that neither leads nor serves a frozen log keeps the stored findings, as it does not check again.
    let check = json!({ "findings": [format!("entry 1: {HOSTILE}")], "omitted": 2 });
    std::fs::write(place.path("state/fsck.json"), check.to_string()).unwrap();
    let site = place.start().await;
    let alarms = site.alarms_with("entry 1: ").await;
    for part in ["entry 1: &lt;script&gt;", "and 2 more findings", "Do not rely on new receipts"] {
        assert!(alarms.contains(part), "no {part}: {alarms}");
    }
    assert!(!alarms.contains("No contradiction of"), "{alarms}");
    let banner = "Alarm: </strong>The stored log contradicts signed tree heads: 3 findings.";
    for path in ["/ui", "/ui/status", "/ui/alarms"] {
        let html = page(&site, path).await;
        assert!(html.contains(banner), "{path}: {html}");
    }
}

#[tokio::test]
async fn checkpoints_policy_and_growth_have_pages() {
    let site = Place::new().start().await;
    for n in 0..3 {
        site.registered(&testkit::opaque("thing", &json!({ "n": n }))).await;
    }
    // The signatures over the newest head are stored a moment after its receipts were sent.
    let mut html = page(&site, "/ui/checkpoints").await;
    while !html.contains("Size 4") {
        tokio::time::sleep(Duration::from_millis(10)).await;
        html = page(&site, "/ui/checkpoints").await;
    }
    assert!(html.contains("no witnesses"), "{html}");
    assert!(page(&site, "/ui/checkpoints?before=3").await.contains("Size 2"));
    let html = page(&site, "/ui/policy").await;
    assert!(html.contains("Revision 0") && html.contains(testkit::ORIGIN), "{html}");
    assert_eq!(page(&site, "/ui/policy/0").await, html);
    let html = page(&site, "/ui/growth").await;
    assert!(html.contains("<polyline") && html.contains("The tree grew from 1 to 4 entries"), "{html}");
    let html = page(&site, "/ui/status").await;
    assert!(html.contains("registers statements") && html.contains("policy: 3 registrations"), "{html}");
    assert_eq!(site.get("/ui/").await.header("location"), Some("/ui"));
}

#[tokio::test]
async fn every_witness_is_listed_with_what_it_cosigned_and_whether_the_quorum_is_met() {
    let (w1, w2) = (TestWitness::start("w1").await, TestWitness::start("w2").await);
    w2.becomes(Manner::KnowsNoLog);
    let policy = k_of(1, &[&w1, &w2]);
    let witnesses = WitnessConfig {
        policy: Some(policy),
        every: Duration::from_secs(1),
        pace: Duration::from_millis(100),
    };
    let place = Place::new();
    w1.knows(&place.checkpoint_key().to_string());
    let site = place.start_with(|config| config.witnesses = witnesses).await;
    site.registered(&receipt_under(&root(|_| ()), SESSION, 1)).await;
    page_with(&site, "/ui/checkpoints", "last attempt: unknown_log").await;
    page_with(&site, "/ui/checkpoints", "<span class=\"good\">fresh</span>").await;
    let html = page_with(&site, "/ui/checkpoints", "cosigned 2 leaves").await;
    for part in [
        "A checkpoint is served after enough cosigned it: <span class=\"good\">met</span>",
        "<strong>w1</strong> <span class=\"good\">fresh</span>",
        "<strong>w2</strong> <span class=\"bad\">not fresh</span>",
        "has cosigned nothing yet, last attempt: unknown_log",
        ", 0 behind",
        &*format!("<code>{}</code>", w1.key),
        "\u{2014} w1.example",
    ] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    answer_with(&site, "/checkpoint", "\n2\n").await;
    let bundle = offered(&site.get("/ui/bundle?session=session-1").await, "session.bundle");
    assert!(bundle.checkpoint.contains("\u{2014} w1.example"), "{}", bundle.checkpoint);
    assert!(bundle.claims.witness_policy.is_some_and(|policy| policy.contains(&w2.key.to_string())));

    w1.goes_away();
    site.registered(&receipt_under(&root(|_| ()), SESSION, 2)).await;
    let html = page_with(&site, "/ui/checkpoints", "<span class=\"bad\">not met</span>").await;
    assert!(html.contains("cosigned 2 leaves") && html.contains(", 1 behind"), "{html}");
    let behind = site.get("/ui/bundle?session=session-1").await;
    assert!(behind.status == 503 && behind.text().contains("checkpoint-behind"), "{behind:?}");
}

#[tokio::test]
async fn the_history_of_the_policy_leads_to_every_policy_with_its_document() {
    let revision = |n: u64| testkit::policy_toml().replace("revision = 0", &format!("revision = {n}"));
    let read = |n: u64| Policy::from_toml(&revision(n)).unwrap();
    let site = Place::new().start().await;
    site.registered(&testkit::opaque("thing", &json!({}))).await;
    let mut ids = vec![site.get("/v1/policy").await.json()["entry_id"].as_str().unwrap().to_owned()];
    for n in 1..3 {
        let next = policy_statement::sign(&read(n), &read(n - 1), &testkit::operator()).unwrap();
        site.registered(&next).await;
        ids.push(next.digest().to_string());
    }
    let in_force = page(&site, "/ui/policy").await;
    assert_eq!(page(&site, "/ui/policy/2").await, in_force);
    let leaves = [("leaf 0", "leaf 1"), ("leaf 2", "leaf 3"), ("leaf 3", "leaf 4")];
    for (n, (leaf, from)) in leaves.into_iter().enumerate() {
        let html = page(&site, &format!("/ui/policy/{n}")).await;
        let (id, digest) = (&ids[n], read(n as u64).digest().to_string());
        for part in [
            format!("<dt>Revision</dt><dd>{n}</dd>"),
            format!("<a href=\"/ui/entries/{id}\">{leaf}</a>"),
            format!("<dt>In force from</dt><dd>{from}, <time"),
            format!("<code>{digest}</code>"),
            format!("&quot;revision&quot;: {n}"),
            format!("href=\"/ui/verify?entry={id}\""),
        ] {
            assert!(html.contains(&part), "{n}: no {part}: {html}");
        }
        let at = |n: u64| html.find(&format!("<a href=\"/ui/policy/{n}\">Revision {n}</a>")).unwrap();
        assert!(at(2) < at(1) && at(1) < at(0), "the newest comes first: {html}");
    }
}

#[tokio::test]
async fn the_latency_of_each_stage_is_a_line_in_a_chart_and_a_row_in_a_list() {
    let site = Place::new().start().await;
    for n in 0..3 {
        site.registered(&testkit::opaque("thing", &json!({ "n": n }))).await;
    }
    let html = page(&site, "/ui/status").await;
    for part in [
        "<svg",
        "role=\"img\"",
        "class=\"grid\"",
        ">100 ms</text>",
        "policy: 3 registrations, half of them at most",
    ] {
        assert!(html.contains(part), "no {part}: {html}");
    }
    let stages = html.matches(", half of them at most").count();
    assert!(stages >= 4, "parsing, verification, decision and queue at least: {html}");
    let lines = ["class=\"thick\"", "class=\"thin\""].map(|line| html.matches(line).count());
    assert_eq!(lines, [stages; 2], "one to the median, and one to the 99th percentile: {html}");
}

#[tokio::test]
async fn pages_need_the_roles_of_the_api_and_a_browser_sends_a_token_as_a_password() {
    const TOKEN: &str = "reader-of-the-tests";
    let site = Place::new()
        .start_with(|config| {
            let token = ClientToken { role: Some(CallerRole::Reader), ..ClientToken::new(TOKEN, TOKEN) };
            config.access.tokens = vec![token];
            config.access.anonymous_role = CallerRole::Public;
            config.access.closed_types = ClosedTypes(vec!["application/json".into()]);
        })
        .await;
    let statement = testkit::opaque("thing", &json!({ "secret": "a prompt" }));
    site.registered(&statement).await;
    let entry = under("/ui/entries", &statement.digest().to_string());
    let password = format!("Basic {}", data_encoding::BASE64.encode(format!("any:{TOKEN}").as_bytes()));
    let ask = async |path: &str, authorization: &str| {
        site.send(Method::GET, path, &[("authorization", authorization)], "").await
    };
    for path in [&*entry, "/ui/search", "/ui/alarms", "/ui/bundle?session=s"] {
        let refused = site.get(path).await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Basic "), "{refused:?}");
        checked_headers(&refused);
        let known = ask(path, &password).await;
        assert_eq!(known.status, if path.starts_with("/ui/bundle") { 404 } else { 200 }, "{path}");
        checked_headers(&known);
        let wrong = ask(path, "Basic YW55Ondyb25n").await;
        assert_eq!(wrong.status, 401, "{path}");
    }
    let closed = ask(&entry, &password).await.text();
    assert!(closed.contains("closed to this caller") && !closed.contains("a prompt"), "{closed}");
    let proof = ask(&format!("{entry}/proof"), &password).await.text();
    for page in [&closed, &proof] {
        assert!(!page.contains("/ui/verify?entry="), "no evidence to verify is given to this caller: {page}");
    }
    for path in [
        "/ui",
        "/ui/checkpoints",
        "/ui/consistency?first=1&second=2",
        "/ui/policy",
        "/ui/growth",
        "/ui/status",
        &format!("{entry}/proof"),
    ] {
        assert!(!page(&site, path).await.contains("thing"), "{path}");
        assert!(!page(&site, path).await.contains("/ui/verify?entry="), "{path}: its bytes are for readers");
    }
    let write = site
        .send(
            Method::POST,
            "/entries",
            &[("authorization", &password), ("content-type", "application/cose")],
            statement.bytes().clone(),
        )
        .await;
    assert_eq!(write.status, 201, "a password is not a token for writing, and none is needed here");
}

#[tokio::test]
async fn a_page_that_does_not_exist_or_breaks_is_a_page_too() {
    let site = Place::new().start().await;
    let unknown = site.get(&format!("/ui/entries/{}", "0".repeat(64))).await;
    assert_eq!(unknown.status, 404);
    checked_headers(&unknown);
    let request = unknown.header("x-request-id").unwrap();
    for part in ["entry-unknown", request, "tabellion help"] {
        assert!(unknown.text().contains(part), "no {part}: {}", unknown.text());
    }
    for (path, status) in [("/ui/nothing", 404), ("/ui/entries/abc", 400), ("/ui/policy/9", 404)] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        checked_headers(&answer);
    }
}
