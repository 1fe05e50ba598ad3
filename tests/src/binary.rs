//! The program under test. `./test` builds it as it ships, with all features and the crash points, and names it in
//! `TABELLION_TEST_PROGRAM`.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the path of the program.
pub fn path() -> &'static Path {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    &PROGRAM.get_or_init(open).path
}

/// The program as an open file. Another build may replace the file while the tests run, and must not change the program
/// under test.
struct Program {
    path: PathBuf,
    _file: File,
}

fn open() -> Program {
    let path = std::env::var_os("TABELLION_TEST_PROGRAM").map(PathBuf::from);
    let path = path.expect("TABELLION_TEST_PROGRAM is not set: run the tests by ./test");
    let file = File::open(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    Program { path: by_descriptor(&file).unwrap_or(path), _file: file }
}

/// Returns a path that refers to the open file itself, if the system has `/proc`.
fn by_descriptor(file: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    path.exists().then_some(path)
}
