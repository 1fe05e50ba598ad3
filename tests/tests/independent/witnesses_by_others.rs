//! Our log, our witness and our tiles before PyPI's `aics-witness` and `aics-tlog`, which know nothing of us but the C2SP
//! specifications. See tests/python/aics_log.py.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use black_box::{Log, OwnedChild, Ran, Service, WitnessHome, on_both_databases};
use data_encoding::HEXLOWER;
use serde_json::Value;
use tempfile::TempDir;

/// The name of their witness.
const WITNESS: &str = "aics.example/witness";
/// Statements: more than a full tile, and a rest.
const STATEMENTS: usize = 300;

#[test]
fn our_witness_cosigns_a_log_of_theirs_and_refuses_another_history() {
    let home = WitnessHome::of(&[]);
    let key = home.path("log.pem");
    let vkey = black_box::run_python("aics_log.py", &["keys", path(&key)])["vkey"].clone();
    home.witness(&[vkey.as_str().unwrap()]);
    let witness = home.serve();
    let seen =
        black_box::run_python("aics_log.py", &["witnessed", &witness.url(), witness.vkey(), path(&key)]);
    assert_eq!(seen["cosigned"], seen["heads"], "{seen}");
    assert_eq!(seen["refused"], 422, "{seen}");
    witness.stop();
}

#[test]
fn their_witness_cosigns_our_log_and_refuses_another_history() {
    let log = Log::sqlite();
    let service = log.serve();
    let witness = TheirWitness::of(&log.vkey());
    for entries in [3, 0, STATEMENTS, 1] {
        log.register(&service, entries);
        witness.submit(&log, &service).must_succeed();
    }
    // Another log under the same key, as large and larger.
    let fork = Log::sqlite();
    fs::copy(log.path("keys/checkpoint.pem"), fork.path("keys/checkpoint.pem")).unwrap();
    let forked = fork.serve();
    fork.register(&forked, STATEMENTS + 50);
    let refused = witness.submit(&fork, &forked);
    assert_eq!(refused.code, Some(8), "{refused}");
    assert_eq!(witness.evidence().as_array().unwrap().len(), 1);
    forked.stop();
    service.stop();
}

on_both_databases! {
    fn their_verifier_reads_our_tiles(log: Log) {
        let service = log.serve();
        log.register(&service, STATEMENTS);
        let older = log.path("older");
        let verify = |command: &str, arguments: &[&str]| {
            aics_tlog(&[&[command, "--tiles", service.url(), "--log-key", &log.vkey()], arguments].concat())
        };
        verify("verify-checkpoint", &["--save-checkpoint", path(&older)]);
        log.register(&service, STATEMENTS);
        let consistent = verify("verify-consistency", &["--old-checkpoint", path(&older)]);
        assert_eq!(consistent["ok"], true, "{consistent}");
        let leaf = HEXLOWER.encode(&leaf(&service, 299));
        let included = verify("verify-inclusion", &["--index", "299", "--leaf-hash", &leaf]);
        assert_eq!(included["ok"], true, "{included}");
        service.stop();
    }
}

/// A witness of theirs. Killed when dropped.
struct TheirWitness {
    _process: OwnedChild,
    folder: TempDir,
    url: String,
    vkey: String,
}

impl TheirWitness {
    /// Starts one of the log with this key.
    fn of(log: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("witness.json");
        let vkey = finished(aics_witness("init", &config).args(["--name", WITNESS]));
        let origin = log.split('+').next().unwrap();
        finished(aics_witness("add-log", &config).args(["--origin", origin, "--vkey", log]));
        let mut serve = aics_witness("serve", &config);
        let mut process = serve.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
        let url = address(BufReader::new(process.stderr.take().unwrap()));
        Self { _process: OwnedChild(process), folder, url, vkey: vkey.trim().to_owned() }
    }

    /// Has our program submit a log's checkpoint to it.
    fn submit(&self, log: &Log, service: &Service) -> Ran {
        let (log_url, witness, key) = (service.url(), self.url.as_str(), self.vkey.as_str());
        log.tabellion(&["witness", "submit", "--json", "--log", log_url, "--witness", witness, "--key", key])
    }

    /// What it keeps of requests that the log signed and that cannot be true.
    fn evidence(&self) -> Value {
        let kept = finished(&mut aics_witness("evidence", &self.folder.path().join("witness.json")));
        serde_json::from_str(&kept).unwrap()
    }
}

fn aics_witness(command: &str, config: &PathBuf) -> Command {
    let mut witness = Command::new(black_box::python());
    witness.args(["-m", "aics_witness", command, "--config"]).arg(config);
    witness
}

/// The address that it says it listens on. Reads on, so that it can go on writing.
fn address(mut lines: BufReader<impl std::io::Read + Send + 'static>) -> String {
    let mut line = String::new();
    let url = loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it listened");
        if let Some((_, rest)) = line.split_once("listening on ") {
            break rest.split(' ').next().unwrap().to_owned();
        }
    };
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    url
}

fn aics_tlog(arguments: &[&str]) -> Value {
    let told = finished(Command::new(black_box::python()).args(["-m", "aics_tlog"]).args(arguments));
    serde_json::from_str(&told).unwrap()
}

/// What a command prints that must succeed.
#[track_caller]
fn finished(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (told, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {told}{complaint}");
    told.into_owned()
}

/// The hash of a leaf, from its full tile.
fn leaf(service: &Service, index: usize) -> Vec<u8> {
    let answer = service.connection().get(&format!("/tile/0/{:03}", index / 256));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body.chunks(32).nth(index % 256).unwrap().to_vec()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
