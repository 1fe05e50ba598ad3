//! Free space of the file systems that a log is written to.
//!
//! Below the configured number of free bytes (`min_free_bytes`) registration is refused, before a write finds the disk
//! full. So committed entries can still be pinned and signed, and the operator has room to work.
//!
//! Not here: writes that find the disk full all the same (`store-sqlite`, `store-postgres`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::config::{Config, Database};
use crate::metrics::Metrics;

/// The monitored folders, and the latest measurement.
#[derive(Debug)]
pub struct FreeSpace {
    folders: Vec<(&'static str, PathBuf)>,
    least: u64,
    low: ArcSwapOption<String>,
}

impl FreeSpace {
    /// Monitors the state directory, and the folder of a SQLite database.
    pub fn of(config: &Config) -> Self {
        let mut folders = vec![("the state directory", config.state_dir.clone())];
        if let Database::Sqlite { path, .. } = &config.database {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folders.push(("the database's folder", folder.unwrap_or(Path::new(".")).to_owned()));
        }
        Self { folders, least: config.limits.min_free_bytes, low: ArcSwapOption::empty() }
    }

    /// The reason why registration is refused; `None` while there is enough space.
    pub fn low(&self) -> Option<Arc<String>> {
        self.low.load_full()
    }

    /// Measures the free space now. Blocks the thread while a file system does not answer.
    pub fn measure(&self, metrics: &Metrics) {
        // A folder that cannot be examined does not count as full: a write there reports the real error.
        let free =
            |(what, folder): &(&'static str, PathBuf)| Some((*what, folder.clone(), free_bytes(folder)?));
        let least = self.folders.iter().filter_map(free).min_by_key(|(.., free)| *free);
        let Some((what, folder, free)) = least else { return };
        metrics.storage.free_bytes.set(i64::try_from(free).unwrap_or(i64::MAX));
        let low = (free < self.least).then(|| {
            let (folder, least) = (folder.display(), self.least);
            format!("{free} bytes are free in {what} {folder}, and {least} must be (min_free_bytes)")
        });
        metrics.storage.low.set(low.is_some().into());
        match (self.low.load().is_some(), &low) {
            (false, Some(why)) => tracing::error!(why, "registration is refused: the disk is almost full"),
            (true, None) => tracing::info!("there is space again: registration continues"),
            _ => {}
        }
        self.low.store(low.map(Arc::new));
    }
}

/// Returns the free bytes of the file system of a folder; `None` if it cannot be read.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}
