//! The explorer in a real browser: narrow and wide, light and dark, by keyboard, with and without JavaScript, with hostile text.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use black_box::{Connection, Log, chromium, run_node, until};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::agentroa::{chain_statement, delegated, receipt_under, root};
use testkit::{AGENT, SESSION, audit_record, decision_json, receipt, verifier};

use crate::verify_page::browse;

/// Text of an attacker, and a word that is too long for any line.
const HOSTILE: &str = "<b>bold</b>\u{202e}\u{1b}[31mhttps://evil.example/";

/// The folder of the screenshots: they stay there, to be looked at.
fn screenshots() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explorer");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn every_page_can_be_read_in_a_browser_of_any_width_without_javascript() {
    let log = Log::sqlite();
    let service = log.serve();
    let mut connection = service.connection();
    let long = format!("{HOSTILE}{}", "x".repeat(400));
    // A tool's name is shorter, and has no controls.
    let tool: String = long.chars().filter(|c| !c.is_control()).take(200).collect();
    let chain = delegated(&root(|_| ()), |members| {
        members["delegated_scope"]["capabilities"] = json!([format!("mcp:crm.{tool}")]);
    });
    let statements = [
        testkit::opaque(&long, &json!({ long.clone(): long })),
        chain_statement(&chain),
        receipt_under(&chain, SESSION, 1),
        audit_record(&decision_json(SESSION, 0)),
        audit_record(&decision_json(SESSION, 3)),
        receipt(1).sign(&verifier()).unwrap(),
    ];
    for statement in &statements {
        assert_eq!(connection.post(statement.bytes()).status, 201);
    }
    let entry = format!("/ui/entries/{}", statements[0].digest());
    let issuer = format!("/ui/issuers/{}", verifier().public_key().did_key());
    let paths = [
        "/ui".to_owned(),
        "/ui/search".to_owned(),
        entry.clone(),
        format!("{entry}/proof"),
        issuer.clone(),
        format!("{issuer}/chain?sub={AGENT}"),
        format!("/ui/sessions/{SESSION}"),
        "/ui/checkpoints".to_owned(),
        "/ui/consistency?first=3&second=7".to_owned(),
        "/ui/policy".to_owned(),
        "/ui/growth".to_owned(),
        "/ui/status".to_owned(),
        "/ui/alarms".to_owned(),
        "/ui/nothing".to_owned(),
        format!("/entries/{}", statements[0].digest()),
    ];
    for page in measured(&connection, "without-scripts", &paths) {
        can_be_read(&page);
        assert_eq!(page["scripts"], 0, "{}", name(&page));
        assert_eq!(page["focus"][0]["name"], "a Skip to the content", "{}", name(&page));
    }
    service.stop();
}

#[test]
fn a_browser_sends_a_search_again_as_it_was() {
    let log = Log::sqlite();
    let service = log.serve();
    let subject = format!("\u{2764}\u{fe0f} \"&amp;' {HOSTILE}");
    assert_eq!(service.connection().post(testkit::opaque(&subject, &json!({})).bytes()).status, 201);
    let form = "new URLSearchParams(new FormData(document.querySelector('form.search')))";
    let encoded: String = subject.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let address = format!("{}/ui/search?subject_prefix={encoded}", service.url());
    let seen = browse(&json!([
        { "open": address },
        { "read": format!("{form}.get('subject_prefix')") },
        { "read": "document.querySelectorAll('ol.rows > li').length" },
    ]));
    assert_eq!(seen["results"], json!([subject, 1]), "{seen:#}");
    service.stop();
}

#[test]
fn trees_that_disagree_can_be_compared_in_a_browser_of_any_width_without_javascript() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, 1);
    service.stop();
    let old = log.database().back_up();
    let service = log.serve();
    log.register(&service, 1);
    service.stop();
    log.database().restore(&old);
    let service = log.serve();
    let mut connection = service.connection();
    until(
        Duration::from_secs(60),
        || "the page of alarms never shows the trees",
        || String::from_utf8_lossy(&connection.get("/ui/alarms").body).contains("that disagree"),
    );
    for page in measured(&connection, "without-scripts", &["/ui/alarms".to_owned()]) {
        can_be_read(&page);
        let text = page["text"].as_str().unwrap();
        for part in ["the database is at 2, this log has signed 3", "Pin", "Database", "this log's, valid"] {
            assert!(text.contains(part), "{}: no {part}: {text}", name(&page));
        }
    }
    service.stop();
}

#[test]
fn the_page_that_verifies_can_be_read_in_a_browser_of_any_width_and_used_by_keyboard() {
    let log = Log::sqlite();
    let service = log.serve();
    for page in measured(&service.connection(), "with-scripts", &["/ui/verify".to_owned()]) {
        can_be_read(&page);
        let focus: Vec<_> =
            page["focus"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        let beginnings = [
            "input Evidence",
            "input Payload",
            "input Trust file to read",
            "textarea Trust file",
            "input Witness policy to read",
            "textarea Witness policy",
            "button Verify",
            "a Save this page",
        ];
        assert_eq!(focus.len(), beginnings.len(), "{}: {focus:?}", name(&page));
        let in_order = focus.iter().zip(beginnings).all(|(name, beginning)| name.starts_with(beginning));
        assert!(in_order, "{}: {focus:?}", name(&page));
        assert!(!page["text"].as_str().unwrap().contains("needs JavaScript"), "{}", name(&page));
    }
    service.stop();
}

#[test]
fn without_javascript_the_page_that_verifies_names_the_command_and_shows_no_form() {
    let log = Log::sqlite();
    let service = log.serve();
    for page in measured(&service.connection(), "without-scripts", &["/ui/verify".to_owned()]) {
        can_be_read(&page);
        let text = page["text"].as_str().unwrap();
        for part in ["This page needs JavaScript", "tabellion verify FILE --trust trust.toml"] {
            assert!(text.contains(part), "{}: no {part}: {text}", name(&page));
        }
        assert!(!text.contains("Witness policy"), "{}: {text}", name(&page));
        let focus = page["focus"].as_array().unwrap();
        assert_eq!(focus.len(), 1, "{}: no field of the form: {focus:?}", name(&page));
    }
    service.stop();
}

/// What a browser measures of each path, with a narrow and a wide window and in two colour schemes.
#[track_caller]
fn measured(connection: &Connection, scripting: &str, paths: &[String]) -> Vec<Value> {
    let base = format!("http://{}", connection.address());
    let (chromium, folder) = (chromium(), screenshots());
    let mut arguments = vec![chromium.as_str(), folder.to_str().unwrap(), scripting, &base];
    arguments.extend(paths.iter().map(String::as_str));
    let seen = run_node("explorer.mjs", &arguments).as_array().unwrap().clone();
    assert_eq!(seen.len(), paths.len() * 4, "two widths, two colour schemes");
    seen
}

fn name(page: &Value) -> String {
    format!("{} at {}, {}", page["path"], page["width"], page["scheme"])
}

/// Checks what every page is, by what the browser measured of one.
#[track_caller]
fn can_be_read(page: &Value) {
    let of = || name(page);
    let status = if page["path"] == "/ui/nothing" { 404 } else { 200 };
    assert_eq!(page["status"], status, "{}", of());
    assert_eq!(page["overflow"], false, "{}: it is {} wide", of(), page["scrollWidth"]);
    assert_eq!(page["weak"], json!([]), "{}: texts that can hardly be read", of());
    assert_eq!(page["foreign"], json!([]), "{}: requests to other hosts", of());
    assert!(page["heading"].as_str().is_some_and(|heading| !heading.is_empty()), "{}", of());
    let focus = page["focus"].as_array().unwrap();
    assert!(focus.iter().all(|one| one["visible"] == true), "{}: {focus:?}", of());
    let text = page["text"].as_str().unwrap();
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{}", of());
}
