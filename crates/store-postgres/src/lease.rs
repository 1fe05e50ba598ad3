//! `Lease`: an advisory lock on a connection that is pinged.
//!
//! The lock lives as long as its session. The holder pings; because of `idle_session_timeout` a holder that was
//! paused loses the session, and with it the lock. The lease only decides which process tries to sequence; the
//! epoch fences all others, as an advisory lock survives neither a failover nor a pooler.

use async_trait::async_trait;
use sqlx::PgConnection;
use store::{Lease, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::error::{store_error, too_late};
use crate::limits;
use crate::session::{self, Server, close};

/// First half of the lock's key (ASCII "tabe"); the second half is the object ID of the log's table, so that logs in
/// schemas of one database have leases of their own.
const LOCK_CLASS: i32 = 0x7461_6265;

pub(crate) async fn lease(server: &Server, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
    let mut connection = server.connect(&session::LEASE).await?;
    let answer = timeout(limits::ANSWER, try_lock(&mut connection))
        .await
        .map_err(|_| too_late("asking for the lease"))?
        .map_err(store_error)?;
    let Some(backend) = answer else {
        close(connection).await;
        return Ok(None);
    };
    tracing::info!(holder, backend, "holding the lease");
    let (end, ended) = watch::channel(false);
    let pings = tokio::spawn(async move {
        let why = keep_alive(connection, backend).await;
        tracing::warn!(why, "the lease is lost");
        end.send_replace(true);
    });
    Ok(Some(Box::new(AdvisoryLock { ended, pings })))
}

/// Tries to take the lock; returns the PID of the backend that holds it.
async fn try_lock(connection: &mut PgConnection) -> Result<Option<i32>, sqlx::Error> {
    let answer = sqlx::query!(
        r#"SELECT pg_try_advisory_lock($1, 'log'::regclass::oid::int) AS "locked!", pg_backend_pid() AS "backend!""#,
        LOCK_CLASS
    )
    .fetch_one(connection)
    .await?;
    Ok(answer.locked.then_some(answer.backend))
}

/// Pings until that fails, and returns the reason. A ping answered by another backend passed through a pooler, and
/// another client may have the backend that holds the lock.
async fn keep_alive(mut connection: PgConnection, backend: i32) -> String {
    let mut ticks = interval_at(Instant::now() + limits::PING, limits::PING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ping = sqlx::query_scalar!(r#"SELECT pg_backend_pid() AS "backend!""#).fetch_one(&mut connection);
        match timeout(limits::PING_ANSWER, ping).await {
            Ok(Ok(answering)) if answering == backend => {}
            Ok(Ok(_)) => return "another server session answers: do not connect through a pooler".into(),
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "a ping was not answered in time".into(),
        }
    }
}

struct AdvisoryLock {
    ended: watch::Receiver<bool>,
    /// Task that owns the connection: ending it closes the session, which frees the lock.
    pings: JoinHandle<()>,
}

#[async_trait]
impl Lease for AdvisoryLock {
    async fn lost(&mut self) {
        // A closed channel means that the pings have ended, too.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for AdvisoryLock {
    fn drop(&mut self) {
        self.pings.abort();
    }
}
