//! Five environments, each from an empty folder and the packages of a release to a verified session within three minutes: a
//! script in Python, one in TypeScript, an agent of LangGraph, one of the OpenAI Agents SDK, and an MCP client with a server
//! in `mcp.json`. Stubs stand for the models.
//!
//! `tools/release` makes the packages, of the extension module and the WebAssembly module under test. What they need comes from
//! PyPI while the time runs, in the versions of `tests/requirements.txt`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use black_box::cli::{Dev, Folder, repository};
use black_box::sdk::{extension, sdk};
use black_box::{node_folder, python};
use serde_json::{Value, json};

use crate::sdk::npm_package;
use crate::{file, release_command, run};

/// Longest time from the empty folder to the verified session.
const LIMIT: Duration = Duration::from_secs(180);

/// A user's folder, in which the time runs.
struct Journey {
    begun: Instant,
    dev: Dev,
}

impl Journey {
    /// Starts a log in an empty folder.
    fn begin() -> Self {
        let begun = Instant::now();
        Self { begun, dev: Dev::start() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dev.folder.path(name)
    }

    /// Installs packages in a new environment of Python.
    #[track_caller]
    fn pip_install(&self, packages: &[&str]) {
        run(Command::new(python()).args(["-m", "venv"]).arg(self.path("env")));
        let mut pip = self.python();
        pip.args(["-m", "pip", "install", "--quiet", "--constraint"]);
        run(pip.arg(repository("tests/requirements.txt")).args(packages));
    }

    /// Installs a package in the folder.
    #[track_caller]
    fn npm_install(&self, package: &Path) {
        let node = fs::canonicalize(node_folder().join("bin/node")).unwrap();
        let npm = node.parent().unwrap().join("../lib/node_modules/npm/bin/npm-cli.js");
        let mut install = Command::new(&node);
        // Without a prefix, npm takes a folder above for the project if there is one.
        install.arg(npm).args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(self.path(""));
        run(install.arg(package).current_dir(self.path("")).env("npm_config_cache", self.path(".npm")));
    }

    /// Returns a command for the Python of the environment.
    fn python(&self) -> Command {
        let mut command = Command::new(self.path("env/bin/python"));
        command.current_dir(self.path("")).env_remove("PYTHONPATH");
        command
    }

    /// Runs an example of the documentation, which ends with a session in `session.cose`.
    #[track_caller]
    fn run_example(&self, mut interpreter: Command, example: &str) {
        let script = self.path(Path::new(example).file_name().unwrap().to_str().unwrap());
        fs::copy(sdk(example), &script).unwrap();
        run(interpreter.arg(script).current_dir(self.path("")));
    }

    /// Calls tools of a server in an `mcp.json`, as a client that starts its servers does.
    #[track_caller]
    fn call_tools(&self, server: &Value, calls: &Value) {
        self.dev.folder.write("calls.json", calls.to_string());
        let arguments = server["args"].as_array().unwrap();
        let command = std::iter::once(&server["command"]).chain(arguments).map(|word| word.as_str().unwrap());
        let mut client = self.python();
        client.arg(repository("tests/python/mcp_client.py")).arg("auto").args(command);
        run(client.stdin(File::open(self.path("calls.json")).unwrap()));
    }

    /// Returns the session of the client's call, once the log has the records of decision and outcome.
    #[track_caller]
    fn session(&self, server: &Value) -> String {
        loop {
            let search = ["entry", "search", "--by", "agent=mcp-client", "--json"];
            let found = self.dev.folder.run(&search).must_end_with(0).json();
            let entries = found["entries"].as_array().unwrap();
            if entries.len() >= 2 {
                return entries[0]["sub"].as_str().unwrap().to_owned();
            }
            assert!(self.begun.elapsed() < LIMIT, "{found}");
            // What a process could not deliver before its client ended it, the next one delivers.
            self.call_tools(server, &json!([]));
        }
    }

    /// Verifies the session with the program, which ends the time.
    #[track_caller]
    fn must_end_with(self, evidence: &str) {
        self.dev.folder.run(&["verify", evidence, "--json"]).must_end_with(0);
        let took = self.begun.elapsed();
        assert!(took < LIMIT, "{took:?}");
    }
}

/// Installs the wheel of a release with an extra (`[langgraph]`, or none), and runs an example.
#[track_caller]
fn must_verify_a_session_in_python(extra: &str, example: &str) {
    let folder = Folder::new();
    let mut wheel = release_command(&folder, "wheel", "/bin/true".as_ref());
    run(wheel.env("TABELLION_PYTHON_EXTENSION", extension()));
    let wheel = file(&folder.path("out"), ".whl");
    let journey = Journey::begin();
    journey.pip_install(&[&format!("{}{extra}", wheel.display())]);
    journey.run_example(journey.python(), &format!("python/examples/{example}"));
    journey.must_end_with("session.cose");
}

#[test]
fn a_python_script() {
    must_verify_a_session_in_python("", "session.py");
}

#[test]
fn an_agent_of_langgraph() {
    must_verify_a_session_in_python("[langgraph]", "langgraph_agent.py");
}

#[test]
fn an_agent_of_the_openai_agents_sdk() {
    must_verify_a_session_in_python("[openai-agents]", "openai_agents_agent.py");
}

#[test]
fn a_typescript_script() {
    let folder = Folder::new();
    let (package, _) = npm_package(&folder);
    let journey = Journey::begin();
    journey.npm_install(&package);
    let node = Command::new(node_folder().join("bin/node"));
    journey.run_example(node, "typescript/examples/session.mjs");
    journey.must_end_with("session.cose");
}

#[test]
fn a_client_with_a_server_in_mcp_json() {
    let journey = Journey::begin();
    journey.pip_install(&["mcp", "mcp-server-time"]);
    let server = json!({ "command": journey.path("env/bin/mcp-server-time"), "args": [] });
    let folder = &journey.dev.folder;
    folder.write("mcp.json", json!({ "mcpServers": { "time": server } }).to_string());
    folder.run(&["gateway", "wrap", "mcp.json", "--dev", "--state", "state"]).must_end_with(0);
    let wrapped: Value = serde_json::from_slice(&folder.read("mcp.json")).unwrap();
    let server = &wrapped["mcpServers"]["time"];
    let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    journey.call_tools(server, &json!([["convert_time", noon]]));
    let session = journey.session(server);
    folder.run(&["bundle", &session, "-o", "session.bundle"]).must_end_with(0);
    journey.must_end_with("session.bundle");
}
