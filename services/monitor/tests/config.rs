//! What a configuration may say, and what is refused.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use monitor::config::Who;
use monitor::{Config, Depth, Vantage};
use tlog::note::NoteSigner;

fn read(text: &str) -> Result<Config, String> {
    Config::from_toml(text, Path::new("/etc/monitor")).map_err(|why| why.to_string())
}

/// A log with these further lines.
fn log(lines: &str) -> String {
    let vkey = common::vkey();
    format!(
        "state_dir = \"state\"\n[[log]]\nname = \"ours\"\nurl = \"https://log.example/prefix\"\nvkey = \"{vkey}\"\n{lines}"
    )
}

#[test]
fn a_log_is_watched_with_what_is_usual() {
    let config = read(&log("")).unwrap();
    assert_eq!(
        (config.every, config.state_dir.as_path()),
        (Duration::from_secs(60), Path::new("/etc/monitor/state"))
    );
    let [log] = &config.logs[..] else { panic!() };
    assert_eq!((log.url.as_str(), log.origin.as_str()), ("https://log.example/prefix/", common::ORIGIN));
    assert_eq!((log.depth, log.stale_after), (Depth::Checkpoints, Duration::from_secs(900)));
    assert!(log.witnesses.is_empty() && log.vantages.is_empty() && log.watches.is_empty() && !log.lean);
}

#[test]
fn everything_can_be_said() {
    let witness = common::witness_key().key().clone();
    let config = read(&log(&format!(
        r#"
        origin = "other.example"
        witnesses = ["{witness}"]
        depth = "decisions"
        stale_after = "1h"
        lag = "30s"
        unreachable_after = "2d"
        clock_tolerance = "1m"
        lean = true
        start = "begin.note"
        [[log.vantage]]
        witness = "https://witness.example/"
        [[log.vantage]]
        file = "elsewhere/checkpoint"
        [[log.watch]]
        issuer = "did:key:z"
        keys = ["aa"]
        silence = "1h"
        [[log.watch]]
        agent = "did:web:agent.example"
        [log.index]
        attestation_name = "monitor.example"
        attestation_key = "keys/attestation.pem"
        "#
    )))
    .unwrap();
    let log = &config.logs[0];
    assert_eq!((log.origin.as_str(), &log.witnesses), ("other.example", &vec![witness]));
    assert_eq!((log.depth, log.lag, log.lean), (Depth::Decisions, Duration::from_secs(30), true));
    assert_eq!(log.unreachable_after, Duration::from_secs(172_800));
    assert_eq!(log.vantages[1], Vantage::File("/etc/monitor/elsewhere/checkpoint".into()));
    let attestation = log.index.as_ref().unwrap().attestation.as_ref().unwrap();
    assert_eq!(attestation.name.to_string(), "monitor.example");
    assert_eq!(attestation.file, Path::new("/etc/monitor/keys/attestation.pem"));
    assert_eq!((&log.watches[0].who, log.watches[0].keys.len()), (&Who::Issuer("did:key:z".into()), 1));
}

#[test]
fn a_witness_policy_names_witnesses_and_a_quorum() {
    let folder = tempfile::tempdir().unwrap();
    let witness = common::witness_key().key().clone();
    std::fs::write(folder.path().join("policy"), format!("witness w {witness}\nquorum w\n")).unwrap();
    let text = log("witness_policy = \"policy\"");
    let config = Config::from_toml(&text, folder.path()).unwrap();
    assert_eq!(
        (config.logs[0].witnesses.as_slice(), config.logs[0].policy.is_some()),
        (&[witness][..], true)
    );
    std::fs::write(folder.path().join("policy"), "quorum nobody\n").unwrap();
    assert!(Config::from_toml(&text, folder.path()).unwrap_err().to_string().contains("nobody"));
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_name() {
    let witness = common::witness_key().key().to_string();
    for (text, named) in [
        (log("depth = \"deep\""), "depth"),
        (log("stale_after = \"90\""), "90"),
        (log("witnesses = [\"nobody\"]"), "nobody"),
        (log(&format!("witnesses = [\"{}\"]", common::vkey())), "0x04"),
        (log("").replace(&common::vkey().to_string(), &witness), "0x01"),
        (log("").replace("https", "ftp"), "http or https URL"),
        (log("").replace("\"ours\"", "\"../ours\""), "log.name"),
        (log("").replace("\"ours\"", "\"lock\""), "log.name"),
        (log("keys = []"), "keys"),
        (log("[[log.vantage]]\n"), "vantage"),
        (log("[[log.watch]]\nissuer = \"x\""), "decisions"),
        (log("depth = \"decisions\"\n[[log.watch]]\nagent = \"x\"\nkeys = [\"aa\"]"), "issuer"),
        (log("[log.index]"), "decisions"),
        (log("depth = \"decisions\"\n[log.index]\nattestation_name = \"x\""), "attestation_key"),
        (log("").replace("state_dir", "every = \"0s\"\nstate_dir"), "every"),
        (format!("{}{}", log(""), &log("")[log("").find("[[log]]").unwrap()..]), "ours"),
        ("state_dir = \"x\"".to_owned(), "log"),
        ("nonsense".to_owned(), "line 1"),
    ] {
        let why = read(&text).unwrap_err();
        assert!(why.contains(named), "{named}: {why}");
    }
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let text = log("depth = \"deep\"\nlag = \"soon\"\nwitnesses = [\"nobody\"]");
    let mistakes = Config::from_toml(&text, Path::new("/etc/monitor")).unwrap_err().0;
    let told: Vec<_> = mistakes.iter().map(|mistake| (mistake.line, mistake.key.as_str())).collect();
    let expected = ["depth", "lag", "witnesses"].map(|key| format!("log ours: {key}"));
    assert_eq!(
        told,
        [6, 7, 8].map(Some).into_iter().zip(expected.iter().map(String::as_str)).collect::<Vec<_>>()
    );
}
