//! Names of temporary files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const SUFFIX: &str = ".tmp";

/// Returns a new name next to `path`, of the process and a counter.
pub fn temporary_path(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.{}{SUFFIX}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// Returns whether this is the name of a temporary file of [`replace`](crate::replace): one that no process is writing was left by
/// a crash.
pub fn is_temporary(name: &str) -> bool {
    let mut parts = name.strip_suffix(SUFFIX).unwrap_or_default().rsplitn(3, '.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number) && parts.next().is_some()
}
