//! Receipts of a service that runs as it should.

use black_box::VerificationProcess;
use black_box::cli::{Dev, repository};
use data_encoding::BASE64;

use crate::{expect_whole, register_all, request};

#[test]
fn a_receipt_verifies_offline_and_the_same_request_has_the_same_one_after_a_restart() {
    let dev = Dev::start();
    let service = VerificationProcess::start(&dev.folder);
    let answers = register_all(&service, 3);
    for (member, file) in [("statement", "one.cose"), ("scitt_receipt", "one.receipt")] {
        let bytes = BASE64.decode(answers[1][member].as_str().unwrap().as_bytes()).unwrap();
        dev.folder.write(file, bytes);
    }
    dev.folder.run(&["verify", "one.cose", "--receipt", "one.receipt"]).must_end_with(0);
    let shown = dev.folder.run(&["vrf", "verify", "one.cose", "--json"]).must_end_with(0).json();
    assert_eq!((&shown["verdict"], &shown["entry"]), (&"pass".into(), &answers[1]["entry"]));
    assert!(service.metrics().contains("tabellion_verification_receipts_total{verdict=\"pass\"} 3"));

    service.kill();
    let service = VerificationProcess::start(&dev.folder);
    assert_eq!(register_all(&service, 3), answers);
    expect_whole(&dev.folder, service.issuer(), 3);
}

#[test]
fn work_that_does_not_fit_its_schema_is_a_verdict() {
    let dev = Dev::start();
    let service = VerificationProcess::start(&dev.folder);
    let answer = service.registered(&request(2000));
    assert_eq!((&answer["verdict"], &answer["position"]), (&"fail".into(), &0.into()));
}

#[test]
fn the_example_in_deploy_is_a_configuration() {
    let dev = Dev::start();
    let example = std::fs::read_to_string(repository("deploy/verification.toml")).unwrap();
    dev.folder.write("ci.token", "a token");
    dev.folder.write("verification.toml", example.replace("/etc/tabellion/ci.token", "ci.token"));
    let ended = dev.folder.run(&["vrf", "serve", "--json", "--config", "verification.toml"]);
    assert_eq!(ended.error(), "file-not-found", "only the key is missing: {ended}");
    let unit = std::fs::read_to_string(repository("deploy/tabellion-verification.service")).unwrap();
    assert!(unit.contains("tabellion vrf serve --config /etc/tabellion/verification.toml"));
    for forbidding in
        ["ProtectHostname=", "RestrictNamespaces=", "ProtectKernelTunables=", "SystemCallFilter="]
    {
        assert!(!unit.lines().any(|line| line.starts_with(forbidding)), "{forbidding} disables bubblewrap");
    }
}
