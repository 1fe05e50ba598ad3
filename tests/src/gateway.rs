//! A gateway as its operator keeps it, and the process that runs it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use scitt::Signer;
use serde_json::Value;
use tempfile::TempDir;

use crate::audit_trail::{Record, records_of};
use crate::http::{Connection, free_address};
use crate::log::{Log, Ran, command, command_through};
use crate::mcp::McpClient;
use crate::service::Service;
use crate::upstream::Upstream;
use crate::vap::Agent;

/// The gateway's name.
pub const GATEWAY: &str = "https://gw.example";
/// Its endpoint's path.
const PATH: &str = "/mcp";
/// The seed of the key that signs its statements.
const EVIDENCE: [u8; 32] = [0x6a; 32];
/// How long a process may take to serve, and to end once it should.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much of a process's log a failed test shows.
const SHOWN: usize = 6_000;
/// Where nobody listens: a gateway whose test needs no log keeps its records.
const NO_LOG: &str = "http://127.0.0.1:9";

/// Runs the program that its arguments name as if the kernel had no Landlock: a seccomp filter lets the system call that
/// makes a ruleset (444 on every architecture) fail with ENOSYS.
const WITHOUT_LANDLOCK: &str = "
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in code))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0
os.execv(sys.argv[1], ['tabellion', *sys.argv[2:]])
";

/// What outlives the processes that run a gateway: its folder, with configuration, keys and evidence.
pub struct Gateway {
    folder: TempDir,
    address: SocketAddr,
    admin: SocketAddr,
    settings: Settings,
    starts: AtomicU64,
}

/// The configuration, in pieces that a test adds to.
#[derive(Clone, Debug, Default)]
struct Settings {
    top: String,
    log: String,
    route: String,
    tables: String,
}

/// A running gateway. Killed when dropped.
pub struct GatewayProcess {
    child: Child,
    stderr: PathBuf,
    url: String,
    admin: String,
}

impl Gateway {
    /// One before a server that is reached over HTTP.
    pub fn before(upstream: &str) -> Self {
        Self::routed(&format!("upstream = \"{upstream}\""))
    }

    /// One before a server that it starts itself.
    pub fn before_command(command: &[String]) -> Self {
        Self::routed(&format!("command = {command:?}"))
    }

    /// One with this in its route.
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

    /// Its statements go to this log.
    pub fn logging_to(mut self, url: &str) -> Self {
        self.settings.log = self.settings.log.replace(NO_LOG, url.trim_end_matches('/'));
        self
    }

    /// Adds to the top of its configuration.
    pub fn top(mut self, toml: &str) -> Self {
        self.settings.top += &format!("{toml}\n");
        self
    }

    /// Adds to the table of its log.
    pub fn log(mut self, toml: &str) -> Self {
        self.settings.log += &format!("{toml}\n");
        self
    }

    /// Adds to its route.
    pub fn route(mut self, toml: &str) -> Self {
        self.settings.route += &format!("{toml}\n");
        self
    }

    /// Adds tables; one of the same name takes the place of ours.
    pub fn table(mut self, toml: &str) -> Self {
        if toml.starts_with("[limits]") {
            self.settings.tables.clear();
        }
        self.settings.tables += &format!("{toml}\n");
        self
    }

    /// Believes what an agent signs.
    pub fn knowing(self, agent: &Agent) -> Self {
        agent.is_known();
        let file = format!("agent-{}.jwk", fastrand::u64(..));
        fs::write(self.path(&file), agent.jwk().to_string()).expect("our own folder");
        self.table(&format!("[[agent]]\nid = \"{}\"\njwk = \"{file}\"", agent.id))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where clients come.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Writes the configuration.
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

    /// The program, to be run in its folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        command.args(arguments);
        command
    }

    /// Runs the program in its folder, with its configuration at hand.
    pub fn tabellion(&self, arguments: &[&str]) -> Ran {
        self.configure();
        self.command(arguments).output().expect("the program runs").into()
    }

    /// Starts it, and waits until it serves.
    #[track_caller]
    pub fn start(&self) -> GatewayProcess {
        self.try_start(&[]).unwrap_or_else(|ran| panic!("the gateway did not start: {ran}"))
    }

    /// Starts it with variables in its surroundings; `Err` if it ends before it serves.
    pub fn try_start(&self, variables: &[(&str, &str)]) -> Result<GatewayProcess, Ran> {
        let mut command = command(self.folder.path());
        command.envs(variables.iter().copied());
        self.started(command, &[])
    }

    /// Starts it as another user, by number, who gets its folder. Needs root.
    #[track_caller]
    pub fn start_as(&self, user: &str) -> GatewayProcess {
        self.configure();
        let number = user.parse().expect("a number");
        give(self.folder.path(), number);
        // Where the program lies, that user may not be able to look.
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

    /// Starts it on a kernel that seems to have no Landlock, with more arguments; `Err` if it ends before it serves.
    pub fn try_start_without_landlock(&self, arguments: &[&str]) -> Result<GatewayProcess, Ran> {
        self.started(self.without_landlock(), arguments)
    }

    /// Checks its configuration on such a kernel.
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

    /// Starts it with its state on a disk of its own, of so many MiB, that nobody else sees: [`GatewayProcess::disk`].
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
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).expect("our own folder"));
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        let _ = BufReader::new(out).read_line(&mut line);
        let mut process =
            GatewayProcess { child, stderr, url: self.url(), admin: format!("http://{}", self.admin) };
        if line.is_empty() {
            let code = process.wait().code();
            return Err(Ran { code, stdout: String::new(), stderr: process.said() });
        }
        let _: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        Ok(process)
    }
}

/// Gives a folder, with all that is in it, to a user.
fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).expect("root may");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("our own folder") {
            give(&entry.expect("our own folder").path(), user);
        }
    }
}

impl GatewayProcess {
    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of the era without sessions.
    pub fn modern(&self) -> McpClient {
        McpClient::modern(&self.url)
    }

    /// A client of the era with sessions, in one.
    #[track_caller]
    pub fn in_session(&self) -> McpClient {
        McpClient::in_session(&self.url)
    }

    /// A new connection to it.
    pub fn connection(&self) -> Connection {
        Connection::to(self.url.trim_end_matches(PATH))
    }

    /// A new connection to its admin listener.
    pub fn admin(&self) -> Connection {
        Connection::to(&self.admin)
    }

    /// Waits until a line of its metrics has this value.
    #[track_caller]
    pub fn wait_for_metric(&self, name: &str, holds: impl Fn(f64) -> bool) {
        self.wait_for_metric_within(PATIENCE, name, holds);
    }

    /// The same, for what takes its time.
    #[track_caller]
    pub fn wait_for_metric_within(&self, patience: Duration, name: &str, holds: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        loop {
            let text = String::from_utf8_lossy(&self.admin().get("/metrics").body).into_owned();
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

    /// Ends it where it stands.
    pub fn kill(mut self) {
        self.kill_here();
    }

    /// The same, by somebody who is about to put another in its place.
    pub fn kill_here(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Asks it to stop, and waits until it has.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.said());
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its state is, whatever it sees of the file system itself.
    pub fn disk(&self, gateway: &Gateway) -> PathBuf {
        let seen = gateway.path("gw");
        PathBuf::from(format!("/proc/{}/root", self.pid()))
            .join(seen.strip_prefix("/").expect("a whole path"))
    }

    /// What it has written to its log so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Memory that it holds, in bytes.
    pub fn memory(&self) -> u64 {
        crate::service::memory_of(self.child.id())
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            let from = said.len().saturating_sub(SHOWN);
            let from = (from..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
            eprintln!("--- {} ends with:\n{}", self.stderr.display(), &said[from..]);
        }
    }
}

/// The public key of the gateway's statements.
pub fn evidence_key() -> String {
    let key = ed25519_dalek::SigningKey::from_bytes(&EVIDENCE);
    data_encoding::HEXLOWER.encode(key.verifying_key().as_bytes())
}

/// A log that admits the gateway's statements.
pub fn admitting_log() -> Log {
    let log = Log::sqlite();
    let key = testkit::ed25519(EVIDENCE).public_key().did_key();
    log.set_policy(&format!(
        "{}\n[[issuer]]\niss = \"{GATEWAY}\"\nkeys = [{{ key = \"{key}\" }}]\n",
        testkit::policy_toml()
    ));
    log
}

/// A gateway between a scripted server and a log of its own.
pub struct Scene {
    /// What stands behind it.
    pub upstream: Upstream,
    /// Where its statements go.
    pub log: Log,
    /// The process that serves that.
    pub service: Service,
    /// The gateway's folder.
    pub gateway: Gateway,
    /// The process that runs it.
    pub running: GatewayProcess,
}

impl Scene {
    /// One with this in the gateway's route.
    #[track_caller]
    pub fn new(upstream: Upstream, route: &str) -> Self {
        Self::built(upstream, |gateway| gateway.route(route))
    }

    /// One whose gateway is made as a test wants it.
    #[track_caller]
    pub fn built(upstream: Upstream, build: impl FnOnce(Gateway) -> Gateway) -> Self {
        let log = admitting_log();
        let service = log.serve();
        let gateway = build(Gateway::before(&upstream.url()).logging_to(service.url()));
        let running = gateway.start();
        Self { upstream, log, service, gateway, running }
    }

    /// The records of the gateway that are on the log, once so many have arrived.
    #[track_caller]
    pub fn records(&self, count: usize) -> Vec<Record> {
        let begun = Instant::now();
        loop {
            let records = records_of(&self.service);
            if records.len() >= count {
                return records;
            }
            let waited = begun.elapsed();
            assert!(waited < PATIENCE, "{} records, not {count}: {}", records.len(), self.running.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
