//! The SDKs for Python and TypeScript, as a program imports them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use scitt::{Algorithm, Signer, SigningKey};
use tempfile::TempDir;
use testkit::McpServer;

use crate::gateway::PAYMENT_RULES;
use crate::others::node_folder;
use crate::python::python;
use crate::{Gateway, Log, node};

/// Variable with the path of the built extension module. If it is missing the test fails, and is not skipped.
const EXTENSION: &str = "TABELLION_TEST_PYTHON_EXTENSION";

/// A tool that no agent may call, besides [`PAYMENT_RULES`]: what `gateway.py` and `gateway.mjs` of the SDKs' tests expect.
const CEILING: &str = "[route.ceiling]\ntools_deny = [\"*.purge\"]\n";

/// The Python package, in a folder for `PYTHONPATH`.
pub struct PythonSdk(TempDir);

impl PythonSdk {
    /// Puts the package's Python files and the extension module together, as they are in a wheel.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("tabellion");
        fs::create_dir(&package).expect("our own folder");
        for entry in fs::read_dir(sdk("python/tabellion")).expect("the package") {
            let file = entry.expect("a file").path();
            let name = file.file_name().expect("a name").to_owned();
            if !name.to_string_lossy().starts_with("_core.abi3") {
                symlink(&file, package.join(name)).expect("our own folder");
            }
        }
        symlink(extension(), package.join("_core.abi3.so")).expect("our own folder");
        Self(folder)
    }

    /// Returns a command that runs a script of `sdk/python`.
    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new(python());
        command.arg(sdk("python").join(script));
        command.env("PYTHONPATH", self.0.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

impl Default for PythonSdk {
    fn default() -> Self {
        Self::new()
    }
}

/// A project of Node.js with the TypeScript package and the MCP SDK among its modules.
pub struct TypeScriptSdk(TempDir);

impl TypeScriptSdk {
    /// Builds the package, with the WebAssembly module that a service serves to its web pages.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let core = folder.path().join("core.wasm");
        write_core(&core);
        let modules = folder.path().join("node_modules");
        let built = Command::new(sdk("../tools/sdk"))
            .arg("typescript")
            .arg(modules.join("@tabellion/sdk"))
            .env("TABELLION_CORE_WASM", &core)
            .output()
            .expect("it runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
        let others = node_folder().join("node_modules");
        symlink(others.join("@modelcontextprotocol"), modules.join("@modelcontextprotocol"))
            .expect("our own folder");
        for part in ["tests", "examples"] {
            let copied =
                Command::new("cp").arg("-r").arg(sdk("typescript").join(part)).arg(folder.path()).status();
            assert!(copied.expect("it runs").success());
        }
        Self(folder)
    }

    /// Returns a command that runs a script of `sdk/typescript`.
    pub fn command(&self, script: &str) -> Command {
        self.command_of(node(), script)
    }

    /// Returns a command that runs a script of `sdk/typescript` with this Node.js.
    pub fn command_of(&self, mut node: Command, script: &str) -> Command {
        node.arg(self.0.path().join(script));
        node
    }
}

impl Default for TypeScriptSdk {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds the agent of the SDKs' examples to a gateway. Its key is `agent.pem` in the gateway's folder.
pub fn with_agent(gateway: Gateway) -> Gateway {
    let key = SigningKey::generate(Algorithm::EdDsa).expect("a key");
    let jwk = key.public_key().to_jwk().to_value().to_string();
    fs::write(gateway.path("agent.jwk"), jwk).expect("our own folder");
    let pem = key.to_pkcs8_pem().expect("a key");
    fs::write(gateway.path("agent.pem"), pem.as_bytes()).expect("our own folder");
    gateway.table("[[agent]]\nid = \"did:example:a\"\njwk = \"agent.jwk\"")
}

/// Runs a script that tests the middleware for MCP, with the URL of a gateway. Only calls with the argument `allowed` may
/// reach the server behind that.
#[track_caller]
pub fn must_keep_promises_through_a_gateway(mut script: Command) {
    let server = McpServer::ordinary();
    let gateway = with_agent(Gateway::before(&server.url()).route(&format!("{CEILING}{PAYMENT_RULES}")));
    let running = gateway.start();
    let output = script.arg(running.url()).current_dir(gateway.folder()).output().expect("it runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    let calls = server.of("tools/call");
    assert!(!calls.is_empty(), "{stdout}{stderr}");
    for call in calls {
        assert_eq!(call.json()["params"]["arguments"]["allowed"], true, "{}", call.text());
    }
    running.stop();
}

/// Writes the core of the SDKs as WebAssembly to a file: the module that a service serves to its web pages.
pub fn write_core(file: &Path) {
    let log = Log::sqlite();
    let service = log.serve();
    let module = service.connection().get("/ui/verify/verifier.wasm");
    assert_eq!(module.status, 200, "the program is built with the feature explorer-verifier");
    service.stop();
    fs::write(file, &module.body).expect("the caller's folder");
}

/// Returns the path of the built extension module for Python.
pub fn extension() -> PathBuf {
    std::env::var_os(EXTENSION).unwrap_or_else(|| panic!("{EXTENSION} names no file: run ./test")).into()
}

/// Returns the path of a part of the SDKs.
pub fn sdk(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sdk")
        .join(part)
        .canonicalize()
        .expect("a part of the SDKs")
}

/// Returns the folder of the test vectors.
pub fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors").canonicalize().expect("the vectors")
}
