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

pub(crate) async fn renew(pool: &PgPool, me: i64, lasts: Duration) -> Result<(), StoreError> {
    let update = sqlx::query("UPDATE instance SET until = now() + make_interval(secs => $2) WHERE no = $1");
    let update = update.bind(me).bind(lasts.as_secs_f64()).execute(pool).await.map_err(store_error)?;
    match update.rows_affected() {
        1 => Ok(()),
        _ => Err(StoreError::Refused("this instance was forgotten: start the process again".into())),
    }
}
