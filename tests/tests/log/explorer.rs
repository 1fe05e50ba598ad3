//! The explorer in a real browser: narrow and wide, light and dark, by keyboard, without JavaScript, with hostile text.

use std::fs;
use std::path::PathBuf;

use black_box::{Log, run_node};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::agentroa::{chain_statement, delegated, receipt_under, root};
use testkit::{AGENT, SESSION, audit_record, decision_json, receipt, verifier};

/// Text of an attacker, and a word that is too long for any line.
const HOSTILE: &str = "<b>bold</b>\u{202e}\u{1b}[31mhttps://evil.example/";

/// The variable that names the browser.
const CHROMIUM: &str = "TABELLION_TEST_CHROMIUM";

fn chromium() -> String {
    std::env::var(CHROMIUM).unwrap_or_else(|_| panic!("{CHROMIUM} names no browser: run ./test"))
}

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
        "/ui/policy".to_owned(),
        "/ui/growth".to_owned(),
        "/ui/status".to_owned(),
        "/ui/alarms".to_owned(),
        "/ui/nothing".to_owned(),
        format!("/entries/{}", statements[0].digest()),
    ];
    let base = format!("http://{}", connection.address());
    let (chromium, folder) = (chromium(), screenshots());
    let mut arguments = vec![chromium.as_str(), folder.to_str().unwrap(), &base];
    arguments.extend(paths.iter().map(String::as_str));
    let seen = run_node("explorer.mjs", &arguments);
    let seen = seen.as_array().unwrap();
    assert_eq!(seen.len(), paths.len() * 4, "two widths, two colour schemes");
    seen.iter().for_each(can_be_read);
    service.stop();
}

/// Checks what the browser measured of one page.
#[track_caller]
fn can_be_read(page: &Value) {
    let of = || format!("{} at {}, {}", page["path"], page["width"], page["scheme"]);
    let status = if page["path"] == "/ui/nothing" { 404 } else { 200 };
    assert_eq!(page["status"], status, "{}", of());
    assert_eq!(page["overflow"], false, "{}: it is {} wide", of(), page["scrollWidth"]);
    assert_eq!(page["weak"], json!([]), "{}: texts that can hardly be read", of());
    assert_eq!(page["foreign"], json!([]), "{}: requests to other hosts", of());
    assert_eq!(page["scripts"], 0, "{}", of());
    assert!(page["heading"].as_str().is_some_and(|heading| !heading.is_empty()), "{}", of());
    let focus = page["focus"].as_array().unwrap();
    assert_eq!(focus[0]["name"], "a Skip to the content", "{}", of());
    assert!(focus.iter().all(|one| one["visible"] == true), "{}: {focus:?}", of());
    let text = page["text"].as_str().unwrap();
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{}", of());
}
