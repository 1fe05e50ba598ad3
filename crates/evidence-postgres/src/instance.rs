//! Instances (runs of gateways) and their leases, in the table `instance`.

use std::time::Duration;

use evidence::{StoreError, limits};
use sqlx::{PgConnection, PgPool};

use crate::error::store_error;

/// Inserts the instance and returns its number. A used name is refused: the new run would take the older run's
/// open decisions for its own.
pub(crate) async fn register(connection: &mut PgConnection, instance: &str) -> Result<i64, StoreError> {
    let insert = sqlx::query_scalar(
        "INSERT INTO instance (name, until) VALUES ($1, now() + make_interval(secs => $2))
             ON CONFLICT DO NOTHING RETURNING no",
    );
    let insert = insert.bind(instance).bind(limits::LEASE.as_secs_f64());
    insert.fetch_optional(connection).await.map_err(store_error)?.ok_or_else(|| {
        StoreError::Refused(format!("another run is or was called {instance}: take another name"))
    })
}

/// Sets the end of the instance's lease, and returns the server's time: not `now()`, at which the statement began, as it may
/// have waited since.
pub(crate) async fn renew(pool: &PgPool, me: i64, lasts: Duration) -> Result<Duration, StoreError> {
    let update = sqlx::query_scalar(
        "UPDATE instance SET until = now() + make_interval(secs => $2) WHERE no = $1
             RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    );
    let update = update.bind(me).bind(lasts.as_secs_f64()).fetch_optional(pool).await.map_err(store_error)?;
    let forgotten = || StoreError::Refused("this instance was forgotten: start the process again".into());
    let micros: i64 = update.ok_or_else(forgotten)?;
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}
