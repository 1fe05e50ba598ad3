//! Registration of instances (runs of gateways) and their leases, in the table `instance`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use evidence::{StoreError, limits};
use sqlx::{PgConnection, PgPool};

use crate::error::{forgotten, store_error};

/// The row of this run.
///
/// Another run removes the row when the lease has been over for long and nothing of this run waits, as after the machine
/// was suspended. Then this run is registered again under its name, and its row has another number.
#[derive(Debug)]
pub(crate) struct Registration {
    name: String,
    number: AtomicI64,
}

impl Registration {
    /// Inserts the row. A used name is refused: the new run would take the older run's open decisions for its own.
    pub(crate) async fn new(connection: &mut PgConnection, name: &str) -> Result<Self, StoreError> {
        let insert = sqlx::query_scalar(
            "INSERT INTO instance (name, until) VALUES ($1, now() + make_interval(secs => $2))
                 ON CONFLICT DO NOTHING RETURNING no",
        );
        let insert = insert.bind(name).bind(limits::LEASE.as_secs_f64());
        let number: Option<i64> = insert.fetch_optional(connection).await.map_err(store_error)?;
        let number = number.ok_or_else(|| {
            StoreError::Refused(format!("another run is or was called {name}: take another name"))
        })?;
        Ok(Self { name: name.to_owned(), number: number.into() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> i64 {
        self.number.load(Ordering::Acquire)
    }

    /// Inserts the row again if it was removed; returns the epoch of the row.
    pub(crate) async fn restore(&self, connection: &mut PgConnection) -> Result<i64, StoreError> {
        let insert = sqlx::query_as::<_, (i64, i64)>(
            "INSERT INTO instance (name, until) VALUES ($1, now() + make_interval(secs => $2))
                 ON CONFLICT (name) DO UPDATE SET until = greatest(instance.until, excluded.until) RETURNING no, epoch",
        );
        let insert = insert.bind(self.name.as_str()).bind(limits::LEASE.as_secs_f64());
        let (number, epoch) = insert.fetch_one(connection).await.map_err(store_error)?;
        if self.number.swap(number, Ordering::AcqRel) != number {
            tracing::warn!(
                instance = self.name,
                "the database had forgotten this instance; it is registered again"
            );
        }
        Ok(epoch)
    }

    /// Renews the lease, for `lasts` from now, and returns the server's time.
    pub(crate) async fn renew(&self, pool: &PgPool, lasts: Duration) -> Result<Duration, StoreError> {
        if let Some(time) = self.set_lease(pool, lasts).await? {
            return Ok(time);
        }
        let mut connection = pool.acquire().await.map_err(store_error)?;
        self.restore(&mut connection).await?;
        // The pool may have no other connection.
        drop(connection);
        self.set_lease(pool, lasts).await?.ok_or_else(forgotten)
    }

    /// Sets the end of the lease, and returns the server's time: not `now()`, at which the statement began, as it may have
    /// waited since. `None` if there is no row.
    pub(crate) async fn set_lease(
        &self,
        pool: &PgPool,
        lasts: Duration,
    ) -> Result<Option<Duration>, StoreError> {
        let update = sqlx::query_scalar(
            "UPDATE instance SET until = now() + make_interval(secs => $2) WHERE no = $1
                 RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        );
        let update = update.bind(self.number()).bind(lasts.as_secs_f64());
        let micros: Option<i64> = update.fetch_optional(pool).await.map_err(store_error)?;
        Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }
}
