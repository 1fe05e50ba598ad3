//! A description that a daemon serves, and clients that are generated from it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use black_box::{Connection, node, node_folder, run_python_on};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::checked_in::must_be_checked_in;

/// A served description, in a folder of its own.
pub struct Description {
    folder: TempDir,
    text: String,
}

impl Description {
    /// Fetches the description of a daemon.
    #[track_caller]
    pub fn served_by(mut connection: Connection) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = connection.get("/openapi.json");
        assert_eq!((served.status, served.must_have("content-type")), (200, "application/json"));
        let text = String::from_utf8(served.body).unwrap();
        fs::write(folder.path().join("openapi.json"), &text).unwrap();
        Self { folder, text }
    }

    /// Asserts that another listener serves the same description.
    #[track_caller]
    pub fn must_be_served_by(&self, mut connection: Connection) {
        let served = connection.get("/openapi.json");
        assert!(served.body == self.text.as_bytes(), "{} has another description", connection.address());
    }

    /// Asserts that the description is the file of this name below `openapi/`. Writes the file if `UPDATE_OPENAPI` is set.
    #[track_caller]
    pub fn must_be_checked_in_as(&self, name: &str) {
        must_be_checked_in(&format!("openapi/{name}"), &self.text, "UPDATE_OPENAPI");
    }

    /// The paths that are described.
    pub fn paths(&self) -> Vec<String> {
        let description: Value = serde_json::from_str(&self.text).unwrap();
        description["paths"].as_object().unwrap().keys().cloned().collect()
    }

    /// Generates a Python client with all operations, and makes these calls (`openapi_client.py`).
    #[track_caller]
    pub fn call_from_python(&self, calls: &Value) -> Vec<Value> {
        let description = self.file("openapi.json");
        let ran = run_python_on("openapi_client.py", &[description.to_str().unwrap()], calls);
        assert_eq!(ran["warnings"], json!([]), "what the generator could not make");
        ran["answers"].as_array().unwrap().clone()
    }

    /// Generates types for TypeScript, compiles a client of `tests/node` with them, runs it, and returns the JSON that it prints.
    #[track_caller]
    pub fn call_from_typescript(&self, client: &str, arguments: &[&str]) -> Value {
        let (description, types) = (self.file("openapi.json"), self.file("api.d.ts"));
        let script = self.file(client);
        fs::copy(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node").join(client), &script).unwrap();
        symlink(node_folder().join("node_modules"), self.file("node_modules")).unwrap();
        run_package(
            "openapi-typescript/bin/cli.js",
            &[description.as_os_str(), "-o".as_ref(), types.as_os_str()],
        );
        self.every_path_has_a_type(&fs::read_to_string(&types).unwrap());
        let options = ["--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions"];
        let options = [&options[..], &["--target", "es2022", "--module", "nodenext"]].concat();
        let compiled: Vec<&OsStr> = options.iter().map(OsStr::new).chain([script.as_os_str()]).collect();
        run_package("typescript/bin/tsc", &compiled);
        serde_json::from_slice(&must_run(node().arg(&script).args(arguments))).unwrap()
    }

    #[track_caller]
    fn every_path_has_a_type(&self, types: &str) {
        for path in self.paths() {
            assert!(types.contains(&format!("    {path:?}: {{")), "{path}");
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The body of an answer to a call from Python.
pub fn body(answer: &Value) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(answer["body"].as_str().unwrap().as_bytes()).unwrap()
}

/// The body of an answer to a call from Python, as text.
pub fn text(answer: &Value) -> String {
    String::from_utf8(body(answer)).unwrap()
}

/// Asserts that an answer has problem details with all their members.
#[track_caller]
pub fn must_be_problem(answer: &Value, status: u16, code: &str) {
    let problem = &answer["parsed"];
    assert_eq!((&answer["status"], &problem["status"]), (&json!(status), &json!(status)), "{answer}");
    assert_eq!(problem["code"], code, "{answer}");
    assert_eq!(problem["type"], format!("https://tabellion.dev/errors/{code}"), "{answer}");
    assert!(problem["instance"].as_str().unwrap().starts_with("urn:uuid:"), "{answer}");
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{answer}");
}

/// Runs a script of a package from npm.
#[track_caller]
fn run_package(script: &str, arguments: &[&OsStr]) {
    must_run(node().arg(node_folder().join("node_modules").join(script)).args(arguments));
}

/// Runs a command that must succeed, and returns what it prints.
#[track_caller]
fn must_run(command: &mut Command) -> Vec<u8> {
    let ran = command.output().unwrap();
    let printed = [&ran.stdout[..], &ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&printed));
    ran.stdout
}
