//! A file that one process holds.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Access;

/// How often a lock that is waited for is tried.
const PAUSE: Duration = Duration::from_millis(2);

/// A lock that is held; the system lets go of it when the process ends, however it ends. Its file is empty and stays: one that
/// is removed or replaced while it is held keeps nobody out.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock is not held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it: another process, or this one.
    #[error("locked already")]
    Taken,
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes a lock, whose file is made if there is none, or says at once that it is taken.
    pub fn take(path: &Path, access: Access) -> Result<Self, LockError> {
        Self::wait(path, access, Duration::ZERO)
    }

    /// Takes a lock, and waits for it. Blocks the thread.
    pub fn wait(path: &Path, access: Access, patience: Duration) -> Result<Self, LockError> {
        let mut how = OpenOptions::new();
        let file = how.create(true).append(true).mode(access.of_file()).open(path)?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(LockError::Taken),
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_lock_is_refused_until_the_first_is_let_go() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lock");
        let first = Lock::take(&file, Access::Secret).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Lock::take(&file, Access::Secret), Err(LockError::Taken)));
        let soon = Duration::from_millis(10);
        assert!(matches!(Lock::wait(&file, Access::Secret, soon), Err(LockError::Taken)));
        drop(first);
        Lock::take(&file, Access::Secret).unwrap();
    }

    #[test]
    fn a_lock_that_is_let_go_meanwhile_is_had() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lock");
        let first = Lock::take(&file, Access::Public).unwrap();
        std::thread::scope(|threads| {
            let second = threads.spawn(|| Lock::wait(&file, Access::Public, Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(20));
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn what_is_no_file_is_not_locked() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(Lock::take(home.path(), Access::Public), Err(LockError::Io(_))));
    }
}
