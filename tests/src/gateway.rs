//! A gateway with its configuration, keys and evidence, and the process that runs it.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scitt::Signer;
use tempfile::TempDir;
use testkit::agentroa::{registry_table, write_registry};
use testkit::{GATEWAY_ID, McpServer};

use crate::audit_trail::{Record, records_of};
use crate::daemon::Daemon;
use crate::http::{Connection, free_address};
use crate::log::{Log, Ran, command, command_through};
use crate::mcp::McpClient;
use crate::service::Service;
use crate::vap::Agent;

/// Issuer name of the gateway.
pub const GATEWAY: &str = "https://gw.example";
/// Path of the gateway's MCP endpoint.
const PATH: &str = "/mcp";
/// Seed of the key that signs the gateway's statements.
const EVIDENCE: [u8; 32] = [0x6a; 32];
/// Maximum time until something is so, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Address without a listener, for tests that need no log: the gateway keeps its records.
const NO_LOG: &str = "http://127.0.0.1:9";

/// Rules of a route: large payments are confirmed by a person, and some are not made at all.
pub const PAYMENT_RULES: &str = r#"
[[route.rule]]
name = "never"
tool = "payments.*"
when = "input.arguments.to == \"nobody\""
then = "deny"

[[route.rule]]
name = "large"
tool = "payments.send"
when = "input.arguments.amount > 1000"
then = "confirm"
"#;

/// Runs the program in its arguments as on a kernel without Landlock: a seccomp filter makes the system call
/// `landlock_create_ruleset` (444 on every architecture) fail with `ENOSYS`.
const WITHOUT_LANDLOCK: &str = "
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in code))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0
os.execv(sys.argv[1], ['tabellion', *sys.argv[2:]])
";

/// The folder of a gateway with configuration, keys and evidence, which outlives its processes.
pub struct Gateway {
    folder: TempDir,
    address: SocketAddr,
    admin: SocketAddr,
    settings: Settings,
    starts: AtomicU64,
}

/// Configuration file in parts, to which tests add settings.
#[derive(Clone, Debug, Default)]
struct Settings {
    top: String,
    log: String,
    route: String,
    tables: String,
}

/// A running `tabellion gateway run` process, killed on drop.
pub struct GatewayProcess {
    daemon: Daemon,
    url: String,
}

impl Gateway {
    /// Creates a gateway for an upstream server that is reached over HTTP.
    pub fn before(upstream: &str) -> Self {
        Self::routed(&format!("upstream = \"{upstream}\""))
    }

    /// Creates a gateway for an upstream server that the gateway starts itself, over stdio.
    pub fn before_command(command: &[String]) -> Self {
        Self::routed(&format!("command = {command:?}"))
    }

    /// Creates a gateway with these settings in its route.
    pub fn routed(route: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = testkit::ed25519(EVIDENCE).to_pkcs8_pem().expect("a key");
        let mut private = File::options();
        let file = private.write(true).create_new(true).mode(0o600).open(folder.path().join("evidence.pem"));
        file.and_then(|mut file| file.write_all(key.as_bytes())).expect("our own folder");
        let settings = Settings {
            log: format!("url = \"{NO_LOG}\"\n"),
            route: format!("{route}\n"),
            tables: "[limits]\nrequests_per_second = 100000\nburst = 100000\n".to_owned(),
            ..Settings::default()
        };
        Self { folder, address: free_address(), admin: free_address(), settings, starts: AtomicU64::new(0) }
    }

    /// Sets the URL of the log that receives the gateway's statements.
    pub fn logging_to(mut self, url: &str) -> Self {
        self.settings.log = self.settings.log.replace(NO_LOG, url.trim_end_matches('/'));
        self
    }

    /// Adds settings to the top level of the configuration.
    pub fn top(mut self, toml: &str) -> Self {
        self.settings.top += &format!("{toml}\n");
        self
    }

    /// Adds settings to the table `[log]`.
    pub fn log(mut self, toml: &str) -> Self {
        self.settings.log += &format!("{toml}\n");
        self
    }

    /// Adds settings to the route.
    pub fn route(mut self, toml: &str) -> Self {
        self.settings.route += &format!("{toml}\n");
        self
    }

    /// Adds a table. A `[limits]` table replaces the default one.
    pub fn table(mut self, toml: &str) -> Self {
        if toml.starts_with("[limits]") {
            self.settings.tables.clear();
        }
        self.settings.tables += &format!("{toml}\n");
        self
    }

    /// Configures the public key of an agent, whose signatures the gateway then accepts.
    pub fn knowing(self, agent: &Agent) -> Self {
        agent.is_known();
        let file = format!("agent-{}.jwk", fastrand::u64(..));
        fs::write(self.path(&file), agent.jwk().to_string()).expect("our own folder");
        self.table(&format!("[[agent]]\nid = \"{}\"\njwk = \"{file}\"", agent.id))
    }

    /// Demands a chain of AgentROA on the route, and no VAP.
    pub fn demanding_chains(self) -> Self {
        write_registry(self.folder(), |_| ());
        self.route("server_id = \"crm\"\nroa = \"required\"\nwithout_vap = \"roa\"").table(&registry_table())
    }

    /// Returns the gateway's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Writes the configuration file, `gateway.toml`.
    pub fn configure(&self) {
        let Settings { top, log, route, tables } = &self.settings;
        let (address, admin) = (self.address, self.admin);
        let text = format!(
            "issuer = \"{GATEWAY}\"\nlisten = \"{address}\"\nadmin_listen = \"{admin}\"\n\
             public_url = \"http://{address}\"\nstate = \"./gw\"\n{top}\n[keys]\nevidence = \"evidence.pem\"\n\n\
             [log]\n{log}\n{tables}\n[[route]]\npath = \"{PATH}\"\n{route}\n"
        );
        fs::write(self.path("gateway.toml"), text).expect("our own folder");
    }

    /// Writes the configuration, and returns the command line with which an MCP client starts `gateway stdio`.
    pub fn stdio_command(&self) -> Vec<String> {
        self.configure();
        let program = crate::program().display().to_string();
        let config = self.path("gateway.toml").display().to_string();
        [&program, "gateway", "stdio", "--config", &config].map(str::to_owned).to_vec()
    }

    /// Returns a command that runs the program in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        command.args(arguments);
        command
    }

    /// Writes the configuration, and runs the program in the folder.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.configure();
        self.command(arguments).output().expect("the program runs").into()
    }

    /// Starts the gateway, and waits until it serves.
    #[track_caller]
    pub fn start(&self) -> GatewayProcess {
        self.try_start(&[]).unwrap_or_else(|ran| panic!("the gateway did not start: {ran}"))
    }

    /// Starts the gateway with additional environment variables; `Err` if it ends before it serves.
    pub fn try_start(&self, variables: &[(&str, &str)]) -> Result<GatewayProcess, Ran> {
        let mut command = command(self.folder.path());
        command.envs(variables.iter().copied());
        self.started(command, &[])
    }

    /// Starts the gateway as another user, given by number, who becomes owner of the folder. Requires root.
    #[track_caller]
    pub fn start_as(&self, user: &str) -> GatewayProcess {
        self.configure();
        let number = user.parse().expect("a number");
        give(self.folder.path(), number);
        // That user may have no access to the folder of the built program.
        let program = self.path("tabellion");
        let built = fs::canonicalize(crate::program()).expect("it was built");
        fs::hard_link(&built, &program)
            .or_else(|_| fs::copy(&built, &program).map(drop))
            .expect("our own folder");
        let as_user = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
        let mut command = Command::new("setpriv");
        command.args(as_user).arg(program).current_dir(self.folder.path());
        command.env_remove("XDG_CONFIG_HOME").env("HOME", self.folder.path());
        self.started(command, &[]).unwrap_or_else(|ran| panic!("the gateway did not start: {ran}"))
    }

    /// Starts the gateway as on a kernel without Landlock, with more arguments; `Err` if it ends before it serves.
    pub fn try_start_without_landlock(&self, arguments: &[&str]) -> Result<GatewayProcess, Ran> {
        self.started(self.without_landlock(), arguments)
    }

    /// Runs `gateway check` as on a kernel without Landlock.
    pub fn check_without_landlock(&self) -> Ran {
        self.configure();
        let mut command = self.without_landlock();
        command.args(["gateway", "check", "--config", "gateway.toml"]);
        command.output().expect("the program runs").into()
    }

    fn without_landlock(&self) -> Command {
        let python = crate::python().display().to_string();
        command_through(self.folder.path(), &python, &["-c", WITHOUT_LANDLOCK])
    }

    /// Starts the gateway with its state on a tmpfs of `mib` MiB that only this process sees: [`GatewayProcess::disk`].
    #[track_caller]
    pub fn start_on_a_small_disk(&self, mib: u32) -> GatewayProcess {
        fs::create_dir(self.path("gw")).expect("our own folder");
        let mount = format!("mount -t tmpfs -o size={mib}m none gw && exec \"$@\"");
        let alone = ["--user", "--map-root-user", "--mount", "sh", "-c", &mount, "sh"];
        let command = command_through(self.folder.path(), "unshare", &alone);
        self.started(command, &[]).unwrap_or_else(|ran| panic!("the gateway did not start: {ran}"))
    }

    fn started(&self, mut command: Command, arguments: &[&str]) -> Result<GatewayProcess, Ran> {
        self.configure();
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let stderr = self.path(&format!("gateway.{number}.log"));
        command.args(["gateway", "run", "--config", "gateway.toml", "--json"]).args(arguments);
        Ok(GatewayProcess { daemon: Daemon::start(command, stderr)?, url: self.url() })
    }
}

/// Makes a user the owner of a folder and everything in it.
fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).expect("root may");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("our own folder") {
            give(&entry.expect("our own folder").path(), user);
        }
    }
}

impl GatewayProcess {
    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a client of the revision without sessions ([`MODERN`](crate::mcp::MODERN)).
    pub fn modern(&self) -> McpClient {
        McpClient::modern(&self.url)
    }

    /// Returns a client of the revision with sessions ([`LEGACY`](crate::mcp::LEGACY)), in a new session.
    #[track_caller]
    pub fn in_session(&self) -> McpClient {
        McpClient::in_session(&self.url)
    }

    /// Returns a new connection to the gateway.
    pub fn connection(&self) -> Connection {
        Connection::to(self.url.trim_end_matches(PATH))
    }

    /// Waits until all values of a metric satisfy `holds`.
    #[track_caller]
    pub fn wait_for_metric(&self, name: &str, holds: impl Fn(f64) -> bool) {
        self.wait_for_metric_within(PATIENCE, name, holds);
    }

    /// Waits like [`wait_for_metric`](Self::wait_for_metric), with this timeout.
    #[track_caller]
    pub fn wait_for_metric_within(&self, patience: Duration, name: &str, holds: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        loop {
            let text = self.metrics();
            let values =
                text.lines().filter_map(|line| line.strip_prefix(name)?.rsplit(' ').next()?.parse().ok());
            let values: Vec<f64> = values.collect();
            if !values.is_empty() && values.iter().all(|value| holds(*value)) {
                return;
            }
            assert!(begun.elapsed() < patience, "{name} is {values:?}: {text}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process with `SIGKILL`.
    pub fn kill(mut self) {
        self.kill_here();
    }

    /// Sends `SIGTERM`, and waits until the process has ended with exit code 0.
    #[track_caller]
    pub fn stop(self) {
        self.daemon.stop();
    }

    /// Returns the path of the state folder as the process sees it.
    pub fn disk(&self, gateway: &Gateway) -> PathBuf {
        self.sees(&gateway.path("gw"))
    }
}

impl Deref for GatewayProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl DerefMut for GatewayProcess {
    fn deref_mut(&mut self) -> &mut Daemon {
        &mut self.daemon
    }
}

/// Returns the public key of the gateway's statements, in hexadecimal.
pub fn evidence_key() -> String {
    let key = ed25519_dalek::SigningKey::from_bytes(&EVIDENCE);
    data_encoding::HEXLOWER.encode(key.verifying_key().as_bytes())
}

/// Returns the public key of the gateway's statements as a `did:key`.
pub fn evidence_did_key() -> String {
    testkit::ed25519(EVIDENCE).public_key().did_key()
}

/// Creates a log whose policy admits the gateway's statements.
pub fn admitting_log() -> Log {
    let log = Log::sqlite();
    let key = evidence_did_key();
    // The gateway's execution receipts are signed with its evidence key.
    let listed = format!("id = \"{GATEWAY_ID}\"\nkeys = [\"{}\"]", testkit::gateway().public_key().did_key());
    let own = format!(
        "[[type.aer.gateway]]\niss = \"{GATEWAY}\"\nid = \"{GATEWAY_ID}\"\nkeys = [{{ key = \"{key}\", signer = \"acme:gateway\" }}]"
    );
    log.set_policy(&format!(
        "{}\n[[issuer]]\niss = \"{GATEWAY}\"\nkeys = [{{ key = \"{key}\" }}]\n",
        testkit::policy_toml().replacen(&listed, &format!("{listed}\n{own}"), 1)
    ));
    log
}

/// A gateway between a scripted MCP server and a log.
pub struct Scene {
    /// Server behind the gateway.
    pub upstream: McpServer,
    /// Log that receives the gateway's statements.
    pub log: Log,
    /// Process that serves the log.
    pub service: Service,
    /// Folder of the gateway.
    pub gateway: Gateway,
    /// Process that runs the gateway.
    pub running: GatewayProcess,
}

impl Scene {
    /// Starts all processes, with these settings in the gateway's route.
    #[track_caller]
    pub fn new(upstream: McpServer, route: &str) -> Self {
        Self::built(upstream, |gateway| gateway.route(route))
    }

    /// Starts all processes, with a gateway that `build` configures.
    #[track_caller]
    pub fn built(upstream: McpServer, build: impl FnOnce(Gateway) -> Gateway) -> Self {
        let log = admitting_log();
        let service = log.serve();
        let gateway = build(Gateway::before(&upstream.url()).logging_to(service.url()));
        let running = gateway.start();
        Self { upstream, log, service, gateway, running }
    }

    /// Waits until the log has at least `count` records of the gateway, and returns them.
    #[track_caller]
    pub fn records(&self, count: usize) -> Vec<Record> {
        records_when(&self.service, &self.running, count)
    }
}

/// Waits until a log has at least `count` records of a gateway, and returns them.
#[track_caller]
pub fn records_when(service: &Service, gateway: &GatewayProcess, count: usize) -> Vec<Record> {
    let begun = Instant::now();
    loop {
        let records = records_of(service);
        if records.len() >= count {
            return records;
        }
        let waited = begun.elapsed();
        assert!(waited < PATIENCE, "{} records, not {count}: {}", records.len(), gateway.said());
        std::thread::sleep(Duration::from_millis(50));
    }
}
