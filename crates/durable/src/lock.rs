//! [`Lock`]: a file that one process holds.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::FileAccess;

/// Pause between attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(2);

/// Held lock; the system releases it when the process ends, for any reason. Its file is empty and stays: removing
/// or replacing it would let a second process take the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Reason why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it, or this one does.
    #[error("locked already")]
    Taken,
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes a lock, and creates its file if needed; [`LockError::Taken`] at once if it is held.
    pub fn take(path: &Path, access: FileAccess) -> Result<Self, LockError> {
        Self::wait(path, access, Duration::ZERO)
    }

    /// Takes a lock, and waits for it up to `patience`. Blocks the thread.
    pub fn wait(path: &Path, access: FileAccess, patience: Duration) -> Result<Self, LockError> {
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
        let first = Lock::take(&file, FileAccess::Secret).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Lock::take(&file, FileAccess::Secret), Err(LockError::Taken)));
        let soon = Duration::from_millis(10);
        assert!(matches!(Lock::wait(&file, FileAccess::Secret, soon), Err(LockError::Taken)));
        drop(first);
        Lock::take(&file, FileAccess::Secret).unwrap();
    }

    #[test]
    fn a_lock_that_is_let_go_meanwhile_is_had() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lock");
        let first = Lock::take(&file, FileAccess::Public).unwrap();
        std::thread::scope(|threads| {
            let second = threads.spawn(|| Lock::wait(&file, FileAccess::Public, Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(20));
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn what_is_no_file_is_not_locked() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(Lock::take(home.path(), FileAccess::Public), Err(LockError::Io(_))));
    }
}
