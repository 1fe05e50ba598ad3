//! A system or container image without certificates of authorities (CA): HTTPS says what is missing and how to provide it, plain
//! HTTP works.

use std::process::Command;

use black_box::cli::{Dev, Folder};
use black_box::{Gateway, LyingLog, Ran};

/// Runs a command where TLS libraries find no certificates.
fn without_certificates(command: &mut Command) -> Ran {
    command.env("SSL_CERT_FILE", "/nonexistent/ca.pem").env("SSL_CERT_DIR", "/nonexistent");
    command.output().unwrap().into()
}

#[track_caller]
fn must_name_the_remedies(ran: &Ran) {
    assert_ne!(ran.code, Some(0), "{ran}");
    for word in ["certificates of authorities", "ca-certificates", "SSL_CERT_FILE"] {
        assert!(ran.stderr.contains(word) || ran.stdout.contains(word), "{word}: {ran}");
    }
}

#[test]
fn a_client_says_what_is_missing_and_needs_nothing_for_plain_http() {
    let dev = Dev::start();
    let list =
        |url: &str| without_certificates(&mut dev.folder.command(&["entry", "list", "--json", "--url", url]));
    let refused = list("https://127.0.0.1:1/");
    must_name_the_remedies(&refused);
    assert!(refused.stderr.contains("no-ca-certificates"), "{refused}");
    let listed = list(dev.url());
    assert_eq!(listed.code, Some(0), "{listed}");
}

#[test]
fn a_gateway_before_a_server_with_https_says_what_is_missing() {
    let gateway = Gateway::before("https://127.0.0.1:1/mcp");
    gateway.configure();
    must_name_the_remedies(&without_certificates(&mut gateway.command(&[
        "gateway",
        "run",
        "--config",
        "gateway.toml",
    ])));
}

#[test]
fn a_monitor_of_a_log_with_https_says_what_is_missing() {
    let folder = Folder::new();
    let vkey = LyingLog::of(1).vkey();
    let arguments = ["monitor", "once", "--url", "https://127.0.0.1:1/", "--key", &vkey];
    must_name_the_remedies(&without_certificates(&mut folder.command(&arguments)));
}
