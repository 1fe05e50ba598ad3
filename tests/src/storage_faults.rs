//! Storage that fails on request, under an unmodified program.
//!
//! A preloaded library (`storage-faults/shim.c`) makes writes, flushes, truncations and opens of chosen files fail. The
//! control file, which the program has mapped, selects the calls, so that a fault starts and ends while the program
//! runs. A failed call has no effect.
//!
//! Not here: file systems that are really full ([`Service::started_on_a_small_disk`](crate::Service)).

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::tally::count;

/// Source file of the preloaded library.
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/storage-faults/shim.c");
/// Offsets of the control file's members, and its length, as in `struct control` of the library.
mod layout {
    pub(super) const KINDS: u64 = 0;
    pub(super) const ERROR: u64 = 4;
    pub(super) const PASSING: u64 = 8;
    pub(super) const FAILING: u64 = 16;
    pub(super) const FAILED: u64 = 24;
    pub(super) const PREFIX: u64 = 32;
    pub(super) const SUFFIX: u64 = 544;
    pub(super) const DELAY: u64 = 608;
    pub(super) const LENGTH: u64 = 616;
}

/// Kinds of system calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `write` and related calls.
    Write = 1,
    /// `fsync` and `fdatasync`.
    Sync = 2,
    /// `ftruncate` and `posix_fallocate`.
    Truncate = 4,
    /// Opening a file for writing, or creating one.
    Open = 8,
}

/// All kinds of calls.
pub const EVERY_CALL: &[Call] = &[Call::Write, Call::Sync, Call::Truncate, Call::Open];

/// Error numbers of failed calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// `ENOSPC`: no space left on the device.
    NoSpace = 28,
    /// `EIO`: an I/O error.
    Io = 5,
    /// `EROFS`: a read-only file system.
    ReadOnly = 30,
}

/// Selection of calls that fail, and their error.
#[derive(Clone, Debug)]
pub struct Fault<'f> {
    /// Kinds of calls.
    pub calls: &'f [Call],
    /// Error number.
    pub error: Errno,
    /// Prefix of the files' paths.
    pub prefix: &'f Path,
    /// Suffix of the files' paths.
    pub suffix: &'f str,
    /// Number of calls that succeed before the first failure.
    pub after: u64,
    /// Number of calls that fail; `None` for all, until [`StorageFaults::end`].
    pub times: Option<u64>,
}

impl<'f> Fault<'f> {
    /// Creates a fault that makes every change of files below a folder fail.
    pub fn of_everything(error: Errno, prefix: &'f Path) -> Self {
        Self { calls: EVERY_CALL, error, prefix, suffix: "", after: 0, times: None }
    }
}

/// The preloaded library and its control file.
pub struct StorageFaults {
    folder: TempDir,
    control: File,
}

impl StorageFaults {
    /// Compiles the library. No call fails yet.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tabellion-faults.").tempdir().expect("a folder");
        open_to_all(folder.path(), 0o711);
        let library = compile(SHIM, folder.path());
        let path = folder.path().join("control");
        let control = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        control.set_len(layout::LENGTH).expect("a file");
        open_to_all(&library, 0o755);
        open_to_all(&path, 0o666);
        Self { folder, control }
    }

    /// Returns the environment variables for the program.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![("LD_PRELOAD", path("shim.so")), ("TABELLION_TEST_STORAGE_FAULTS", path("control"))]
    }

    /// Starts a fault, which replaces an earlier one.
    pub fn begin(&self, fault: &Fault<'_>) {
        self.begin_after(fault, Duration::ZERO);
    }

    /// Delays the selected calls by this time, instead of making them fail.
    pub fn slow_down(&self, fault: &Fault<'_>, delay: Duration) {
        self.begin_after(fault, delay);
    }

    fn begin_after(&self, fault: &Fault<'_>, delay: Duration) {
        self.end();
        let delay = u32::try_from(delay.as_millis()).expect("not so long");
        self.write(layout::DELAY, &delay.to_ne_bytes());
        let (prefix, suffix) = (fault.prefix.display().to_string(), fault.suffix);
        assert!(prefix.len() < 512 && suffix.len() < 64, "{prefix} {suffix}");
        self.write(layout::PREFIX, &padded::<512>(&prefix));
        self.write(layout::SUFFIX, &padded::<64>(suffix));
        self.write(layout::ERROR, &(fault.error as i32).to_ne_bytes());
        self.write(layout::PASSING, &fault.after.to_ne_bytes());
        let times = fault.times.map_or(-1, |times| i64::try_from(times).expect("not so often"));
        self.write(layout::FAILING, &times.to_ne_bytes());
        self.write(layout::FAILED, &0_u64.to_ne_bytes());
        let kind = if delay == 0 { format!("{:?}", fault.error) } else { format!("{delay} ms") };
        count(&format!("storage faults begun: {kind}"), 1);
        // Written last, as it activates the fault.
        let kinds = fault.calls.iter().fold(0, |kinds, call| kinds | *call as u32);
        self.write(layout::KINDS, &kinds.to_ne_bytes());
    }

    /// Ends the fault.
    pub fn end(&self) {
        self.write(layout::KINDS, &0_u32.to_ne_bytes());
    }

    /// Returns the number of calls that failed since the fault started.
    pub fn failed(&self) -> u64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, layout::FAILED).expect("the control file");
        u64::from_ne_bytes(bytes)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.control.write_all_at(bytes, at).expect("the control file");
    }
}

impl Default for StorageFaults {
    fn default() -> Self {
        Self::new()
    }
}

/// Compiles a library to be preloaded, into a folder.
pub(crate) fn compile(source: &str, folder: &Path) -> PathBuf {
    let library = folder.join("shim.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([source, "-ldl"]);
    let compiled = compiler.output().expect("a C compiler: install one (Debian: gcc libc6-dev)");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}

fn padded<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Makes a file accessible: a database server may run as another user.
fn open_to_all(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}

/// A tmpfs that only one process sees, filled and emptied from outside.
pub struct SmallDisk {
    root: PathBuf,
}

impl SmallDisk {
    pub(crate) fn of(root: PathBuf) -> Self {
        Self { root }
    }

    /// Fills the disk until `left` bytes are free.
    pub fn fill(&self, left: u64) {
        use std::io::Write as _;
        let mut file = File::create(self.filler()).expect("the process runs");
        let page = [1; 4096];
        while file.write_all(&page).is_ok() {}
        let full = file.metadata().expect("our own file").len();
        file.set_len(full.saturating_sub(left)).expect("our own file");
        count("disks filled", 1);
    }

    /// Frees the space again.
    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("our own file");
    }

    fn filler(&self) -> PathBuf {
        self.root.join("filler")
    }
}
