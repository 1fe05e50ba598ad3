//! The explorer over HTTP: each page shows what the API says, text of statements stays text, and roles hold.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Answer, Place, Site};
use merkle::RootHash;
use registration::conversation::Form;
use reqwest::Method;
use scitt::{SignedStatement, Signer, StatementBuilder};
use sequencer::PinFile;
use serde_json::json;
use store::Pin;
use testkit::agentroa::{AGENTS, chain_statement, delegated, receipt_under, root};
use testkit::{
    AGENT, SESSION, aer_json, aer_statement, audit_json, audit_record, conversation, decision_json, gateway,
    outcome_json, receipt, receipt_json, verdict, verdict_json, verifier, vrf,
};
use transparency::{CallerRole, ClientToken, ClosedTypes};

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
    for raw in
        ["<script", "onerror=alert(1)>", "\u{1b}", "\u{202e}", "\u{e0041}", "href=\"https://evil", " style="]
    {
        assert!(!html.contains(raw), "{path} contains {raw:?}: {html}");
    }
    html
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
    let html = page(&site, "/ui/search?payload_digest=abc").await;
    assert!(html.contains("payload_digest is a SHA-256") && html.contains("value=\"abc\""), "{html}");
    assert!(page(&site, "/ui/search?subject=nothing").await.contains("No entry matches."));
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
    paths.push(format!("/ui/search?{0}={0}", display::percent_encoded(HOSTILE)));
    paths.push(under("/ui/issuers", testkit::ISSUER));
    let did = other.public_key().did_key();
    paths.push(format!("{}/chain?sub={}", under("/ui/issuers", &did), display::percent_encoded(AGENT)));
    paths.extend([&hostile, &text, &verified].map(|one| under("/ui/entries", &one.digest().to_string())));
    for path in paths {
        page(&site, &path).await;
    }
    let html = page(&site, &under("/ui/entries", &text.digest().to_string())).await;
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("\\u{202e}"), "{html}");
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
        (conversation(1, Form::Json), "Conversation at leaf 1", "about session-1"),
        (answered, "Audit record at leaf 2", "verdict <b>served</b>"),
        (outcome, "Audit record at leaf 3", "status <b>executed</b>"),
        (unanswered, "Audit record at leaf 4", "seq <b>2</b>"),
        (verdict(&verdict_json()), "Verdict at leaf 5", "verdict <b>served</b>"),
        (aer_statement(execution).sign(&gateway()).unwrap(), "Execution receipt at leaf 6", "about "),
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
    assert!(alarms.contains(&fork.digest().to_string()) && alarms.contains("Nothing was found"), "{alarms}");
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
    assert!(!alarms.contains("Nothing was found"), "{alarms}");
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
    assert!(!alarms.contains("Nothing was found"), "{alarms}");
    let banner = "Alarm: </strong>The stored log contradicts what was signed: 3 findings.";
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
    for path in [&*entry, "/ui/search", "/ui/alarms"] {
        let refused = site.get(path).await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Basic "), "{refused:?}");
        checked_headers(&refused);
        checked(&ask(path, &password).await);
        let wrong = ask(path, "Basic YW55Ondyb25n").await;
        assert_eq!(wrong.status, 401, "{path}");
    }
    let closed = ask(&entry, &password).await.text();
    assert!(closed.contains("closed to this caller") && !closed.contains("a prompt"), "{closed}");
    let proof = ask(&format!("{entry}/proof"), &password).await.text();
    for page in [&closed, &proof] {
        assert!(!page.contains("/ui/verify?entry="), "no evidence to verify is given to this caller: {page}");
    }
    for path in
        ["/ui", "/ui/checkpoints", "/ui/policy", "/ui/growth", "/ui/status", &format!("{entry}/proof")]
    {
        assert!(!page(&site, path).await.contains("thing"), "{path}");
    }
    let write = site
        .send(
            Method::POST,
            "/entries",
            &[("authorization", &password), ("content-type", "application/cose")],
            statement.bytes().clone(),
        )
        .await;
    assert_eq!(write.status, 201, "a password is no token for writing, and none is needed here");
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
