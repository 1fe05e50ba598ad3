//! Partitions of the table `entry`: the next one is created when the newest is half full.
//!
//! A failure to create it does not fail the batch, as half a partition is still free. Once that is full, inserting
//! fails, and the log is read-only until a partition is created.

use std::sync::{Mutex, PoisonError};

use merkle::TreeSize;
use store::StoreError;
use tokio::time::{Instant, timeout};

use crate::error::{store_error, too_late};
use crate::limits;
use crate::session::{self, Server, close};

/// Entries per partition; the same value as `entry_partition_width()` in the schema.
const WIDTH: u64 = 1 << 22;

/// Partitions known to this process.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    known: Mutex<KnownPartitions>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KnownPartitions {
    /// Partitions below this number are known to exist.
    below: u64,
    not_before: Option<Instant>,
}

impl Partitions {
    /// Creates the partitions for a log of that size, and the next one ahead of time.
    pub(crate) async fn make_room(&self, server: &Server, size: TreeSize) {
        let wanted = partitions_wanted(size);
        let known = self.known();
        if known.below >= wanted || known.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        let now = match create(server, current_partition(size)..wanted).await {
            Ok(()) => KnownPartitions { below: wanted, not_before: None },
            Err(error) => {
                tracing::error!(%error, "no partition for the next entries could be made");
                KnownPartitions { not_before: Some(Instant::now() + limits::PARTITION_RETRY), ..known }
            }
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn known(&self) -> KnownPartitions {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn current_partition(size: TreeSize) -> u64 {
    size.get().saturating_sub(1) / WIDTH
}

/// Number of partitions wanted: up to the current one, and one more when that is half full.
fn partitions_wanted(size: TreeSize) -> u64 {
    (size.get() + WIDTH / 2) / WIDTH + 1
}

async fn create(server: &Server, numbers: std::ops::Range<u64>) -> Result<(), StoreError> {
    let mut connection = server.connect(&session::UPKEEP).await?;
    for number in numbers {
        let created = sqlx::query!("SELECT create_entry_partition($1)", crate::number::column(number))
            .execute(&mut connection);
        timeout(limits::ANSWER, created)
            .await
            .map_err(|_| too_late("making a partition"))?
            .map_err(store_error)?;
    }
    close(connection).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_partition_is_wanted_when_the_newest_is_half_full() {
        for (size, current, wanted) in [
            (0, 0, 1),
            (1, 0, 1),
            (WIDTH / 2 - 1, 0, 1),
            (WIDTH / 2, 0, 2),
            (WIDTH, 0, 2),
            (WIDTH + 1, 1, 2),
            (WIDTH + WIDTH / 2, 1, 3),
        ] {
            let size = TreeSize::new(size);
            assert_eq!(
                (current_partition(size), partitions_wanted(size)),
                (current, wanted),
                "at size {size}"
            );
        }
    }
}
