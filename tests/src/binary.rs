//! The program under test, built as it ships, with all features and the crash points. `TABELLION_TEST_PROGRAM` names another one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Prefixes of the variables that cargo sets for a test, describing the test's package. Build scripts that watch these
/// variables would run again, and half of the program be compiled again, whenever a build by a test follows any other
/// build or precedes one.
const OF_THIS_RUN: &[&str] =
    &["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_PRIMARY_", "CARGO_BIN_"];

/// Returns the path of the program. The first call in each test process builds it; cargo decides if there is work to
/// do.
pub fn path() -> &'static Path {
    static BUILT: OnceLock<Program> = OnceLock::new();
    &BUILT.get_or_init(build).path
}

/// The program as an open file. Another build may replace the file while the tests run, and must not change the program
/// under test.
struct Program {
    path: PathBuf,
    _file: File,
}

fn build() -> Program {
    let path = std::env::var_os("TABELLION_TEST_PROGRAM").map_or_else(build_here, PathBuf::from);
    let file = File::open(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    Program { path: by_descriptor(&file).unwrap_or(path), _file: file }
}

fn build_here() -> PathBuf {
    let folder = profile_folder();
    let release = folder.ends_with("release");
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in
        std::env::vars().filter(|(name, _)| OF_THIS_RUN.iter().any(|prefix| name.starts_with(prefix)))
    {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--quiet", "--package", "tabellion", "--features", "crash-points,otlp"])
        .args(release.then_some("--release"))
        .arg("--target-dir")
        .arg(folder.parent().expect("a profile folder lies in the target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the program does not build");
    folder.join("tabellion")
}

/// Returns a path that refers to the open file itself, if the system has `/proc`.
fn by_descriptor(file: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    path.exists().then_some(path)
}

/// Returns `target/debug`, for a test in `target/debug/deps`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let deps = test.parent().expect("it is in a folder");
    deps.parent().expect("that is in the profile's folder").to_owned()
}
