//! Leases of instances, in memory, as the lock file admits one process only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evidence::StoreError;
use sqlx::SqliteConnection;

use crate::sql;

#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<String, Instant>>);

impl Leases {
    pub(crate) fn renew(&self, instance: &str, lasts: Duration) {
        let now = Instant::now();
        let until = now.checked_add(lasts).unwrap_or(now);
        self.all().insert(instance.to_owned(), until);
    }

    pub(crate) fn end(&self, instance: &str) {
        self.all().remove(instance);
    }

    /// Returns the instances whose lease is not over, except `but`.
    pub(crate) fn active(&self, but: Option<&str>) -> Vec<String> {
        let now = Instant::now();
        let mut all = self.all();
        all.retain(|_, until| *until > now);
        all.keys().filter(|name| but != Some(name.as_str())).cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses the name of an earlier run: the new run would take that one's open decisions for its own.
pub(crate) async fn refuse_used_name(
    connection: &mut SqliteConnection,
    instance: &str,
) -> Result<(), StoreError> {
    let open =
        "SELECT EXISTS (SELECT 1 FROM open_decision o JOIN record r ON r.no = o.record WHERE r.instance = ?)";
    let used: bool =
        sqlx::query_scalar(open).bind(instance).fetch_one(connection).await.map_err(sql::store_error)?;
    if used {
        return Err(StoreError::Refused(format!("an earlier run was called {instance}: take another name")));
    }
    Ok(())
}
