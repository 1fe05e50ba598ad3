//! A server that the gateway starts cannot read the gateway's keys, records or memory, nor end it, whatever code it runs:
//! started by root, by an ordinary user as the same user, and with a user of its own.

use std::fs;
use std::num::NonZeroI32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use black_box::{Gateway, GatewayProcess, McpClient};
use serde_json::json;

/// A user without any rights, as whom root can run a program.
const NOBODY: &str = "65534";

/// A gateway before the hostile server, and a folder that its route makes writable.
struct Scene {
    gateway: Gateway,
    writable: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with("")
    }

    /// With more in the route.
    fn with(route: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let server = folder.path().join("server.py");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/hostile_server.py"), &server).unwrap();
        let writable = folder.path().join("writable");
        fs::create_dir(&writable).unwrap();
        fs::set_permissions(&writable, fs::Permissions::from_mode(0o777)).unwrap();
        let command = ["/usr/bin/python3".to_owned(), server.display().to_string()];
        let gateway = Gateway::before_command(&command)
            .route("without_vap = \"advisory\"")
            .route(&format!("writable = [\"{}\"]", writable.display()))
            .route(route);
        fs::write(gateway.path("log.token"), "a secret token\n").unwrap();
        fs::write(gateway.path("trust.toml"), "").unwrap();
        let gateway = gateway.log("token_file = \"log.token\"").top("hide = [\"hidden\"]");
        fs::create_dir(gateway.path("hidden")).unwrap();
        fs::write(gateway.path("hidden/more"), "more").unwrap();
        Self { gateway, writable, _folder: folder }
    }
}

/// Calls the hostile server.
struct Attacker(McpClient);

impl Attacker {
    fn of(running: &GatewayProcess) -> Self {
        Self(running.in_session())
    }

    /// Runs Python code in the server. The code's `result`, or its exception.
    #[track_caller]
    fn run(&mut self, code: &str) -> String {
        let answer = self.0.call("run", json!({ "code": code }), json!({}));
        answer.result()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }

    #[track_caller]
    fn must_be_refused(&mut self, code: &str) {
        let came = self.run(code);
        assert!(came.starts_with("PermissionError"), "{code}: {came}");
    }
}

fn read(path: &Path) -> String {
    format!("result = open({:?}, 'rb').read()", path.display().to_string())
}

fn write(path: &Path) -> String {
    format!("open({:?}, 'ab').write(b'x'); result = 'written'", path.display().to_string())
}

/// Asserts that a server reaches neither the gateway's files nor its process, and works all the same.
fn assert_isolated(scene: &Scene, running: &GatewayProcess) {
    let mut attacker = Attacker::of(running);
    assert_secrets_out_of_reach(&scene.gateway, &mut attacker);
    assert_process_out_of_reach(running.pid().as_raw_nonzero(), &mut attacker);
    assert_server_works(&scene.writable, &mut attacker);
}

/// Asserts that a server reads what is not a secret, writes where it may, and starts programs.
fn assert_server_works(writable: &Path, attacker: &mut Attacker) {
    assert!(attacker.run("result = open('/etc/passwd').read()").contains("root"));
    assert_eq!(attacker.run(&write(&writable.join("new"))), "written");
    assert_eq!(
        attacker.run("import subprocess; result = subprocess.check_output(['/bin/echo', 'hello'])"),
        "b'hello\\n'"
    );
    assert_eq!(
        attacker.run("open('/dev/null', 'w').write('x'); result = len(open('/dev/urandom', 'rb').read(8))"),
        "8"
    );
}

/// Asserts that a server neither reads, changes, removes nor links a file of the gateway.
fn assert_secrets_out_of_reach(gateway: &Gateway, attacker: &mut Attacker) {
    let files = [
        "evidence.pem",
        "gateway.toml",
        "log.token",
        "hidden/more",
        "gw/verdict.key",
        "gw/state.key",
        "gw/jwks.json",
        "gw/evidence.db",
    ];
    for file in files {
        let path = gateway.path(file);
        assert!(path.is_file(), "{file} is where the test looks for it");
        attacker.must_be_refused(&read(&path));
        attacker.must_be_refused(&write(&path));
        attacker.must_be_refused(&format!("import os; os.unlink({:?})", path.display().to_string()));
        let link = format!("import os; os.link({:?}, '/tmp/link-to-a-secret')", path.display().to_string());
        assert!(attacker.run(&link).contains("Error"), "{link}");
        // By way of a program that it starts, and of the root folder of its own process.
        let by_another = format!(
            "import subprocess; subprocess.check_output(['/bin/cat', {:?}])",
            path.display().to_string()
        );
        assert!(attacker.run(&by_another).contains("Error"), "{file}");
        attacker.must_be_refused(&read(&PathBuf::from(format!("/proc/self/root{}", path.display()))));
    }
    attacker.must_be_refused(&write(&gateway.path("gw/new")));
    attacker.must_be_refused(&write(&gateway.path("new")));
}

/// Asserts that a server neither reads the gateway's process nor sends it a signal.
fn assert_process_out_of_reach(pid: NonZeroI32, attacker: &mut Attacker) {
    for file in ["environ", "mem", "maps", "fd/0", "auxv"] {
        attacker.must_be_refused(&read(&PathBuf::from(format!("/proc/{pid}/{file}"))));
    }
    attacker.must_be_refused(&format!("import os; result = os.readlink('/proc/{pid}/fd/0')"));
    attacker.must_be_refused(&format!("import os; result = os.listdir('/proc/{pid}/root')"));
    for signal in [0, 9, 15, 19] {
        attacker.must_be_refused(&format!("import os; os.kill({pid}, {signal})"));
    }
    for file in ["/proc/sys/kernel/core_pattern", "/etc/passwd"] {
        attacker.must_be_refused(&format!("open({file:?}, 'r+b')"));
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_server_of_the_same_user_is_isolated_from_the_gateway() {
    let scene = Scene::new();
    let running = scene.gateway.start();
    assert_isolated(&scene, &running);
    running.stop();
}

#[test]
fn a_server_of_the_same_ordinary_user_is_isolated_from_the_gateway() {
    let scene = Scene::new();
    let running = if is_root() { scene.gateway.start_as(NOBODY) } else { scene.gateway.start() };
    assert_isolated(&scene, &running);
    running.stop();
}

#[test]
fn a_server_can_have_a_user_of_its_own_if_the_gateway_runs_as_root() {
    let scene = Scene::with(&format!("user = \"{NOBODY}:{NOBODY}\""));
    if !is_root() {
        let ran = scene.gateway.try_start(&[]).err().unwrap();
        assert!(ran.stderr.contains("`user` needs a gateway that runs as root"), "{ran}");
        return;
    }
    let running = scene.gateway.start();
    assert_isolated(&scene, &running);
    let mut attacker = Attacker::of(&running);
    assert_eq!(
        attacker.run("import os; result = os.getresuid() + os.getresgid()"),
        format!("{:?}", [65534; 6]).replace('[', "(").replace(']', ")")
    );
    assert_eq!(attacker.run("import os; result = os.getgroups()"), "[]");
    attacker.must_be_refused("import os; os.setuid(0)");
    running.stop();
}

#[test]
fn a_server_has_no_privileges_even_as_root() {
    let scene = Scene::new();
    let running = scene.gateway.start();
    let mut attacker = Attacker::of(&running);
    let status = attacker.run("result = open('/proc/self/status').read()");
    for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line} in {status}");
    }
    assert!(!is_root() || status.contains("CapBnd:\t0000000000000000"), "{status}");
    running.stop();
}

#[test]
fn a_server_that_takes_all_resources_harms_itself_alone() {
    let scene = Scene::with("memory = \"512MiB\"\nopen_files = 64\nprocesses = 40");
    let running = if is_root() { scene.gateway.start_as(NOBODY) } else { scene.gateway.start() };
    let mut attacker = Attacker::of(&running);
    let mut honest = Attacker::of(&running);
    let filled = attacker.run("kept = []\nwhile True: kept.append(bytearray(16 << 20))");
    assert!(filled.starts_with("MemoryError"), "{filled}");
    let opened = attacker.run("kept = []\nwhile True: kept.append(open('/dev/null'))");
    assert!(opened.starts_with("OSError: [Errno 24]"), "{opened}");
    // The kernel counts the processes of the user, whoever started them: at most as many as are allowed.
    let forked = "import os, time\ncount = 0\ntry:\n  while count < 100:\n    if os.fork() == 0:\n      time.sleep(600)\n      os._exit(0)\n    count += 1\nexcept BlockingIOError: result = 'stopped'";
    assert_eq!(attacker.run(forked), "stopped");
    assert_eq!(honest.run("result = 6 * 7"), "42");
    let core = attacker.run("import resource; result = resource.getrlimit(resource.RLIMIT_CORE)");
    assert_eq!(core, "(0, 0)");
    running.stop();
}

#[test]
fn a_server_needs_landlock_unless_the_operator_waives_it() {
    let scene = Scene::new();
    let refused = scene.gateway.try_start_without_landlock(&[]).err().unwrap();
    assert!(refused.stderr.contains("--unsafe-shared-user"), "{refused}");
    let running = scene.gateway.try_start_without_landlock(&["--unsafe-shared-user"]).ok().unwrap();
    let mut attacker = Attacker::of(&running);
    assert_eq!(attacker.run("result = 'works'"), "works");
    assert!(
        attacker.run(&read(&scene.gateway.path("evidence.pem"))).contains("PRIVATE KEY"),
        "as was asked for"
    );
    running.stop();
}

#[test]
fn a_check_says_what_isolates_servers_here() {
    let scene = Scene::new();
    let ran = scene.gateway.tabellion(&["gateway", "check", "--config", "gateway.toml"]);
    assert!(ran.stdout.contains("isolation of servers   Landlock keeps children from"), "{ran}");
    let ran = scene.gateway.check_without_landlock();
    assert!(ran.stdout.contains("FAIL  isolation of servers"), "{ran}");
    assert_eq!(ran.code, Some(3), "{ran}");
}
