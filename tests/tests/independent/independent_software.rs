//! Software that none of us wrote issues, registers and verifies: see tests/python/independent.py.

use std::path::Path;

use black_box::{Load, Log, Recorder, on_both_databases};
use serde_json::Value;

/// Statements of each issuer and each library.
const STATEMENTS: u64 = 12;
/// Issuers times libraries.
const KINDS: u64 = 6;

on_both_databases! {
    fn statements_by_others_register_and_others_verify_their_receipts(log: Log) {
        let keys = log.path("");
        admit(&log, &python(&["keys", path(&keys)]));
        let service = log.serve();
        let told = python(&["register", service.url(), path(&keys), &STATEMENTS.to_string()]);
        assert_eq!(told["verified"], STATEMENTS * KINDS);
        assert_eq!(told["tree_sizes"], STATEMENTS * KINDS, "one at a time, each receipt is of another tree");
        // Later, in a larger tree, after a restart: fresh receipts, under the same key.
        let recorder = Recorder::new();
        Load { log: &log, recorder: &recorder, writers: 4 }
            .on(&service, || std::thread::sleep(std::time::Duration::from_millis(500)));
        service.kill();
        let service = log.serve();
        let told = python(&["audit", service.url(), path(&keys)]);
        assert_eq!(told["verified"], STATEMENTS * KINDS);
        service.stop();
    }
}

#[test]
fn receipts_of_other_algorithms_verify_too() {
    for algorithm in ["EdDSA", "ES384"] {
        let log = Log::sqlite();
        std::fs::remove_file(log.path("keys/receipt.pem")).unwrap();
        log.tabellion(&["key", "new", "--output", "keys/receipt.pem", "--alg", algorithm]).must_succeed();
        log.configure(&format!("receipt_alg = \"{algorithm}\""));
        let keys = log.path("");
        admit(&log, &python(&["keys", path(&keys)]));
        let service = log.serve();
        let told = python(&["register", service.url(), path(&keys), "2"]);
        assert_eq!(told["verified"], 2 * KINDS, "{algorithm}");
        service.stop();
    }
}

/// Binds the issuers' keys in the log's policy.
fn admit(log: &Log, keys: &Value) {
    let mut policy = testkit::policy_toml();
    for (name, pem) in keys.as_object().unwrap() {
        let pem = pem.as_str().unwrap();
        policy.push_str(&format!(
            "\n[[issuer]]\niss = \"https://{name}.independent.example\"\nkeys = [{{ key = '''{pem}''', kid = \"key-1\" }}]\n"
        ));
    }
    log.set_policy(&policy);
}

fn python(arguments: &[&str]) -> Value {
    black_box::run_python("independent.py", arguments)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
