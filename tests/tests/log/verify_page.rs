//! The page on which evidence is verified in the browser, in a real Chromium.

use std::fs;

use black_box::{Log, Service, chromium, run_node};
use scitt::{SignedStatement, Signer};
use serde_json::{Value, json};
use testkit::agentroa::{receipt_under, root};
use testkit::{AGENT, ISSUER, SESSION, receipt, verifier};

/// Text that must stay text: markup, and characters that turn the direction of what follows.
const HOSTILE: &str = "<img src=x onerror=document.title=1>\u{202e}\u{7}";

/// A log with two entries, and a reader's folder: `trust.toml`, `some.bundle`, `other.bundle` of other bytes, and
/// `one.transparent.cose`.
fn evidence(log: &Log) -> (Service, SignedStatement) {
    let service = log.serve();
    let statements =
        [testkit::opaque(HOSTILE, &json!({ "n": 1 })), testkit::opaque("two", &json!({ "n": 2 }))];
    for statement in &statements {
        assert_eq!(service.connection().post(statement.bytes()).status, 201);
    }
    let pem = testkit::es256().public_key().to_spki_pem();
    fs::write(log.path("issuer.pem"), pem).unwrap();
    let kid = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned();
    let pin =
        ["trust", "add", "log", "--trust", "trust.toml", "--kid", &kid, "--checkpoint-key", &log.vkey()];
    log.tabellion(&[&pin[..], &["--url", service.url()]].concat()).must_succeed();
    let issuer = ["trust", "add", "issuer", "--trust", "trust.toml", "--iss", ISSUER, "--key", "issuer.pem"];
    log.tabellion(&issuer).must_succeed();

    let ids: Vec<String> = statements.iter().map(|statement| statement.digest().to_string()).collect();
    let pack = ["bundle", &ids[0], &ids[1], "-o", "some.bundle", "--url", service.url()];
    log.tabellion(&pack).must_succeed();
    let bundle = fs::read_to_string(log.path("some.bundle")).unwrap();
    let tampered = bundle.replacen("\"policy\":0", "\"policy\":1", 1);
    fs::write(log.path("other.bundle"), tampered).unwrap();
    let transparent = service.connection().get(&format!("/v1/entries/{}/transparent", ids[0]));
    fs::write(log.path("one.transparent.cose"), transparent.body).unwrap();
    let [first, _] = statements;
    (service, first)
}

/// Runs steps of `tests/node/verify_page.mjs`; no script may fail and no policy be broken.
#[track_caller]
pub fn browse(steps: &Value) -> Value {
    let seen = run_node("verify_page.mjs", &[&chromium(), &steps.to_string()]);
    assert_eq!(seen["problems"], json!([]), "{seen:#}");
    seen
}

/// Waits for a verdict other than this one, and reads it.
fn verdict_after(before: &str) -> [Value; 2] {
    let outcome = "document.querySelector('[data-outcome]')";
    let read = format!("[{outcome}.dataset.outcome, {outcome}.dataset.reason]");
    let wait = format!("{outcome} && {outcome}.dataset.outcome !== '{before}'");
    [json!({ "wait": wait }), json!({ "read": read })]
}

fn path(log: &Log, name: &str) -> String {
    log.path(name).display().to_string()
}

#[test]
fn the_page_verifies_what_is_chosen_and_what_is_dropped_and_asks_no_server() {
    let log = Log::sqlite();
    let (service, statement) = evidence(&log);
    let page = format!("{}/ui/verify", service.url());
    let trust = fs::read_to_string(log.path("trust.toml")).unwrap();
    let [wait_first, read_first] = verdict_after("");
    let [wait_failed, read_failed] = verdict_after("verified");
    let [wait_again, read_again] = verdict_after("failed");
    let [wait_unknown, read_unknown] = verdict_after("verified");
    let seen = browse(&json!([
        { "size": [320, 800] },
        { "open": page },
        { "files": { "evidence": path(&log, "some.bundle") } },
        { "fill": { "trust": trust } },
        { "click": "button[type=submit]" },
        wait_first, read_first,
        { "read": "document.documentElement.scrollWidth <= 320" },
        { "read": "document.querySelector('main').innerText.includes('\\u202e')" },
        { "read": "document.images.length" },
        { "read": "document.activeElement.id" },
        { "drop": [path(&log, "other.bundle")] },
        wait_failed, read_failed,
        { "drop": [path(&log, "trust.toml"), path(&log, "one.transparent.cose")] },
        wait_again, read_again,
        { "fill": { "trust": "" } },
        { "click": "button[type=submit]" },
        wait_unknown, read_unknown,
    ]));
    assert_eq!(
        seen["results"],
        json!([
            ["verified", ""],
            true,
            false,
            0,
            "result",
            ["failed", "policy-missing"],
            ["verified", ""],
            ["not-verified", "no-trust-anchors"],
        ]),
        "{seen:#}"
    );
    let files =
        ["", "/page.css", "/host.js", "/page.js", "/verifier.wasm"].map(|file| format!("{page}{file}"));
    let mut requests: Vec<_> =
        seen["requests"].as_array().unwrap().iter().map(|url| url.as_str().unwrap()).collect();
    requests.retain(|url| !url.ends_with("/favicon.ico"));
    assert_eq!(requests, files, "the page, its files, and nothing else");

    let [wait, read] = verdict_after("");
    let link = format!("{page}?entry={}", statement.digest());
    let of_entry = browse(&json!([
        { "size": [1280, 800] },
        { "open": format!("{}/ui/entries/{}", service.url(), statement.digest()) },
        { "read": "document.querySelector('main a[href*=\"verify?entry=\"]').href" },
        { "open": link },
        { "wait": "document.querySelector('.notice:not(noscript *)')" },
        { "fill": { "trust": trust } },
        { "click": "button[type=submit]" },
        wait, read,
    ]));
    assert_eq!(of_entry["results"], json!([link, ["verified", ""]]), "{of_entry:#}");
    service.stop();
}

#[test]
fn a_session_a_chain_a_checkpoint_and_the_policy_are_fetched_by_the_links_of_their_pages_and_verified() {
    let log = Log::sqlite();
    let (service, _) = evidence(&log);
    let receipts = [receipt_under(&root(|_| ()), SESSION, 1), receipt(1).sign(&verifier()).unwrap()];
    for statement in &receipts {
        assert_eq!(service.connection().post(statement.bytes()).status, 201);
    }
    let did = verifier().public_key().did_key();
    let pages = [
        (format!("/ui/sessions/{SESSION}"), "verify?session="),
        (format!("/ui/issuers/{did}/chain?sub={AGENT}"), "verify?issuer="),
        ("/ui/checkpoints".to_owned(), "verify?checkpoint="),
        ("/ui/policy".to_owned(), "verify?entry="),
    ];
    let steps: Vec<Value> = pages
        .iter()
        .flat_map(|(page, link)| {
            let read = format!("document.querySelector('main a[href*=\"{link}\"]').href");
            [json!({ "open": format!("{}{page}", service.url()) }), json!({ "read": read })]
        })
        .collect();
    let links = browse(&json!(steps))["results"].clone();
    // The keys of the gateway and of the operator are not in the trust file: their signatures are left to the log.
    let trust = format!(
        "issuer_signature = \"left-to-log\"\n{}",
        fs::read_to_string(log.path("trust.toml")).unwrap()
    );
    for link in links.as_array().unwrap() {
        let [wait, read] = verdict_after("");
        let seen = browse(&json!([
            { "open": link },
            { "wait": "document.querySelector('.notice:not(noscript *)')" },
            { "fill": { "trust": trust } },
            { "click": "button[type=submit]" },
            wait, read,
        ]));
        assert_eq!(seen["results"], json!([["verified", ""]]), "{link}: {seen:#}");
    }
    service.stop();
}

#[test]
fn an_answer_without_a_body_is_no_evidence() {
    let log = Log::sqlite();
    let service = log.serve();
    let page = format!("{}/ui/verify?entry={}", service.url(), "5".repeat(64));
    // Registration is still running; and a service that answers wrongly.
    for status in [204, 200] {
        let seen = browse(&json!([
            { "answer": { "path": "/transparent", "status": status } },
            { "open": page },
            { "wait": "document.querySelector('.notice:not(noscript *)')" },
            { "read": "document.querySelector('.notice:not(noscript *)').textContent" },
            { "click": "button[type=submit]" },
            { "wait": "document.querySelector('[data-outcome]')" },
            { "read": "document.querySelector('[data-outcome]').textContent" },
        ]));
        let [notice, outcome] = [&seen["results"][0], &seen["results"][1]].map(|one| one.as_str().unwrap());
        let expected = format!("yet: the service answered without any ({status})");
        assert!(notice.starts_with("There is no evidence") && notice.contains(&expected), "{notice}");
        assert_eq!(outcome, "choose the evidence first");
    }
    service.stop();
}

#[test]
fn the_keyboard_alone_verifies_and_opens_the_checks_and_every_verdict_can_be_read() {
    let log = Log::sqlite();
    let (service, _) = evidence(&log);
    let trust = fs::read_to_string(log.path("trust.toml")).unwrap();
    let [wait, read] = verdict_after("");
    let [wait_failed, _] = verdict_after("verified");
    let [wait_unknown, _] = verdict_after("failed");
    let focused = json!({ "read": "document.activeElement.id || document.activeElement.localName" });
    let is_open = json!({ "read": "document.activeElement.parentElement.open" });
    let seen = browse(&json!([
        { "size": [320, 800] },
        { "open": format!("{}/ui/verify", service.url()) },
        { "files": { "evidence": path(&log, "some.bundle") } },
        { "press": ["Tab", "Tab", "Tab", "Tab"] },
        focused,
        { "type": trust },
        { "press": ["Tab", "Tab", "Tab"] },
        focused,
        { "press": ["Enter"] },
        wait, read, focused,
        { "press": ["Tab"] },
        focused, is_open,
        { "press": ["Enter"] },
        is_open,
        { "scheme": "light" }, { "weak": null },
        { "scheme": "dark" }, { "weak": null },
        { "drop": [path(&log, "other.bundle")] },
        wait_failed,
        { "weak": null },
        { "scheme": "light" }, { "weak": null },
        { "fill": { "trust": "" } },
        { "drop": [path(&log, "some.bundle")] },
        wait_unknown,
        { "weak": null },
        { "scheme": "dark" }, { "weak": null },
    ]));
    let results = seen["results"].as_array().unwrap();
    let (by_keyboard, weak) = results.split_at(7);
    assert_eq!(
        json!(by_keyboard),
        json!(["trust", "button", ["verified", ""], "result", "summary", false, true]),
        "{seen:#}"
    );
    assert_eq!(json!(weak), json!([[], [], [], [], [], []]), "texts that can hardly be read");
    service.stop();
}

#[test]
fn the_saved_page_verifies_without_a_server() {
    let log = Log::sqlite();
    let (service, _) = evidence(&log);
    let page = service.connection().get("/ui/verify/offline.html");
    let disposition = "attachment; filename=\"tabellion-verifier.html\"";
    assert_eq!((page.status, page.header("content-disposition")), (200, Some(disposition)));
    fs::write(log.path("page.html"), &page.body).unwrap();
    service.stop();

    let trust = fs::read_to_string(log.path("trust.toml")).unwrap();
    let [wait, read] = verdict_after("");
    let url = format!("file://{}", path(&log, "page.html"));
    let seen = browse(&json!([
        { "open": url },
        { "files": { "evidence": path(&log, "some.bundle") } },
        { "fill": { "trust": trust } },
        { "click": "button[type=submit]" },
        wait, read,
    ]));
    assert_eq!(seen["results"], json!([["verified", ""]]), "{seen:#}");
    assert_eq!(seen["requests"], json!([url]), "one file, and no request of it");
}

#[test]
fn the_page_and_its_files_are_confined() {
    let log = Log::sqlite();
    let service = log.serve();
    let policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for file in ["", "/page.css", "/host.js", "/page.js", "/verifier.wasm", "/offline.html"] {
        let answer = service.connection().get(&format!("/ui/verify{file}"));
        assert_eq!((answer.status, answer.header("content-security-policy")), (200, Some(policy)), "{file}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{file}");
    }
    service.stop();
}
