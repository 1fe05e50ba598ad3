//! The Debian package in a root of its own: dpkg installs, upgrades, removes and purges it there, and runs its scripts. The
//! tests run as root, for `chroot`. Only `systemctl` is not the real one: it writes down how it was called.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use black_box::cli::Folder;

use crate::artefacts::small_program;
use crate::{file, release_of, run};

/// Programs that the scripts call, with `sh`, which runs them.
const PROGRAMS: [&str; 2] = ["/bin/sh", "/usr/bin/systemd-sysusers"];
/// The stand-in for `systemctl`, and the file of its calls.
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$*\" >>/calls\n";
const CALLS: &str = "calls";
/// The folder that says that systemd runs the machine.
const SYSTEMD_RUNS: &str = "run/systemd/system";
/// Users of the package, each with its state in `/var/lib`.
const USERS: [&str; 5] =
    ["tabellion", "tabellion-gateway", "tabellion-monitor", "tabellion-verification", "tabellion-witness"];
/// Configuration files of the package, in `/etc/tabellion`.
const CONFIGURATION: [&str; 6] = [
    "gateway.toml",
    "monitor.toml",
    "policy.toml",
    "tabellion.toml",
    "verification.toml",
    "witness-logs.txt",
];
/// The last number of a user of the system, in Debian.
const LAST_SYSTEM_USER: u32 = 999;

/// A root with nothing but what the scripts need.
struct Root {
    folder: Folder,
    root: PathBuf,
}

impl Root {
    fn new() -> Self {
        let folder = Folder::new();
        let root = folder.path("root");
        for name in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "etc", "usr/bin"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for program in PROGRAMS {
            copy_with_libraries(program, &root);
        }
        write_executable(&root.join("usr/bin/systemctl"), SYSTEMCTL);
        let architecture = run(Command::new("dpkg").arg("--print-architecture"));
        let systemd = format!(
            "Package: systemd\nStatus: install ok installed\nMaintainer: Debian\nArchitecture: {}\nVersion: 252\n\
             Description: init\n",
            architecture.trim()
        );
        fs::write(root.join("var/lib/dpkg/status"), systemd).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
        Self { folder, root }
    }

    /// A root of a machine that systemd runs.
    fn with_systemd() -> Self {
        let root = Self::new();
        fs::create_dir_all(root.path(SYSTEMD_RUNS)).unwrap();
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Runs dpkg on this root. It asks no question: a configuration file that was changed is kept.
    #[track_caller]
    fn dpkg(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", self.root.display())).args(["--force-confdef", "--force-confold"]);
        run(command.args(arguments).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
    }

    #[track_caller]
    fn install(&self, package: &Path) {
        self.dpkg(&["--install", package.to_str().unwrap()]);
    }

    /// The package with a program that does nothing.
    fn package(&self) -> PathBuf {
        small_program(&self.folder);
        file(&release_of(&self.folder, "deb", &self.folder.path("small")), ".deb")
    }

    /// A later version of the package, with a further line in two configuration files.
    fn later(&self, package: &Path) -> PathBuf {
        let (parts, later) = (self.folder.path("parts"), self.folder.path("later.deb"));
        run(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&parts));
        for name in ["tabellion.toml", "monitor.toml"] {
            append(&parts.join("etc/tabellion").join(name), "# new in this version\n");
        }
        let control = parts.join("DEBIAN/control");
        let text = fs::read_to_string(&control).unwrap();
        let version = text.lines().find(|line| line.starts_with("Version: ")).unwrap();
        fs::write(&control, text.replace(version, &format!("{version}.later"))).unwrap();
        run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&parts).arg(&later));
        later
    }

    /// The calls of `systemctl` since the last look.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path(CALLS)).unwrap_or_default();
        let _ = fs::remove_file(self.path(CALLS));
        text.lines().map(str::to_owned).collect()
    }

    fn names_in(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The status that dpkg has of the package.
    fn status(&self) -> String {
        let text = self.dpkg(&["--status", "tabellion"]);
        text.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap().to_owned()
    }

    /// Writes what an operator and the services write: a setting, a key, a log.
    fn use_the_package(&self) {
        append(&self.path("etc/tabellion/tabellion.toml"), "# set by the operator\n");
        fs::write(self.path("etc/tabellion/receipt.key"), "a key").unwrap();
        fs::create_dir_all(self.path("var/lib/tabellion")).unwrap();
        fs::write(self.path("var/lib/tabellion/log.db"), "a log").unwrap();
    }
}

/// Copies a program of this machine with its libraries, each to its own path.
fn copy_with_libraries(program: &str, root: &Path) {
    let libraries = run(Command::new("ldd").arg(program));
    let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    for path in libraries.chain([program]) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
}

fn write_executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn append(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text + line).unwrap();
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{}", path.display());
    metadata.permissions().mode() & 0o7777
}

/// Each service has a user of the system of its own, without a shell and without a password.
fn check_users(root: &Root) {
    let users = fs::read_to_string(root.path("etc/passwd")).unwrap();
    let groups = fs::read_to_string(root.path("etc/group")).unwrap();
    let passwords = fs::read_to_string(root.path("etc/shadow")).unwrap();
    let mut numbers = BTreeSet::new();
    for name in USERS {
        let line = |text: &str| -> Vec<String> {
            let found = text.lines().find(|line| line.starts_with(&format!("{name}:")));
            found.unwrap_or_else(|| panic!("no {name} in {text}")).split(':').map(str::to_owned).collect()
        };
        let user = line(&users);
        let (number, group): (u32, u32) = (user[2].parse().unwrap(), user[3].parse().unwrap());
        assert!((1..=LAST_SYSTEM_USER).contains(&number) && numbers.insert(number), "{user:?}");
        assert_eq!((&*user[5], &*user[6]), (&*format!("/var/lib/{name}"), "/usr/sbin/nologin"));
        assert_eq!(line(&groups)[2..], [group.to_string(), String::new()], "the group of {name} has others");
        assert!(line(&passwords)[1].starts_with('!'), "{name} has a password");
    }
}

#[test]
fn installing_creates_the_users_and_starts_nothing() {
    let root = Root::with_systemd();
    root.install(&root.package());
    assert_eq!(root.status(), "install ok installed");
    check_users(&root);
    assert_eq!(root.calls(), ["daemon-reload"]);
    assert_eq!(mode(&root.path("usr/bin/tabellion")), 0o755);
    assert_eq!(mode(&root.path("etc/tabellion")), 0o755);
    assert_eq!(root.names_in("etc/tabellion"), BTreeSet::from(CONFIGURATION.map(str::to_owned)));
    for name in CONFIGURATION {
        assert_eq!(mode(&root.path("etc/tabellion").join(name)), 0o644, "{name}");
    }
    for unit in root.names_in("usr/lib/systemd/system") {
        assert_eq!(mode(&root.path("usr/lib/systemd/system").join(&unit)), 0o644, "{unit}");
    }
    let state = root.names_in("var/lib");
    assert_eq!(state, BTreeSet::from(["dpkg".to_owned()]), "a unit makes its folder when it starts");
}

#[test]
fn an_upgrade_keeps_changed_configuration_and_state_and_restarts_what_runs() {
    let root = Root::with_systemd();
    let package = root.package();
    root.install(&package);
    root.use_the_package();
    let users = fs::read_to_string(root.path("etc/passwd")).unwrap();
    root.calls();
    root.install(&root.later(&package));
    let units = USERS.map(|user| format!("{user}.service")).join(" ");
    assert_eq!(root.calls().last().unwrap(), &format!("try-restart {units}"));
    let read = |name: &str| fs::read_to_string(root.path("etc/tabellion").join(name)).unwrap();
    assert!(read("tabellion.toml").ends_with("# set by the operator\n"), "it is not written over");
    assert!(read("tabellion.toml.dpkg-dist").ends_with("# new in this version\n"));
    assert!(read("monitor.toml").ends_with("# new in this version\n"), "it was not changed by anybody");
    assert!(root.path("var/lib/tabellion/log.db").exists());
    assert_eq!(fs::read_to_string(root.path("etc/passwd")).unwrap(), users);
}

#[test]
fn removing_stops_the_services_and_keeps_configuration_and_purging_keeps_state_keys_and_users() {
    let root = Root::with_systemd();
    root.install(&root.package());
    root.use_the_package();
    root.calls();
    root.dpkg(&["--remove", "tabellion"]);
    let units = USERS.map(|user| format!("{user}.service")).join(" ");
    assert_eq!(root.calls(), [format!("--quiet disable --now {units}"), "daemon-reload".to_owned()]);
    assert_eq!(root.status(), "deinstall ok config-files");
    assert!(!root.path("usr/bin/tabellion").exists() && !root.path("usr/lib/systemd/system").exists());
    let kept: BTreeSet<String> =
        CONFIGURATION.iter().chain(&["receipt.key"]).map(|name| (*name).to_owned()).collect();
    assert_eq!(root.names_in("etc/tabellion"), kept);

    root.dpkg(&["--purge", "tabellion"]);
    assert_eq!(root.calls(), ["daemon-reload"]);
    assert_eq!(root.names_in("etc/tabellion"), BTreeSet::from(["receipt.key".to_owned()]));
    assert_eq!(root.names_in("var/lib/tabellion"), BTreeSet::from(["log.db".to_owned()]));
    check_users(&root);
}

#[test]
fn where_systemd_does_not_run_the_scripts_create_the_users_and_call_nothing() {
    let root = Root::new();
    let package = root.package();
    root.install(&package);
    check_users(&root);
    root.install(&root.later(&package));
    root.dpkg(&["--purge", "tabellion"]);
    assert_eq!(root.calls(), Vec::<String>::new());
    assert_eq!(root.names_in("etc/tabellion"), BTreeSet::new());
}
