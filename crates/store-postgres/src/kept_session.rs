//! [`KeptSession`]: one session for the sequencer's look-ups, kept between batches.
//!
//! A pool tests a session with a round trip when it hands it out and with another one when it gets it back, which
//! triples the cost of a look-up. This session is tested only after a pause.

use postgres::UNTESTED;
use sqlx::{Connection, PgConnection};
use store::StoreError;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::session::{self, Server};

/// Session with the time of its last use.
#[derive(Debug, Default)]
pub(crate) struct KeptSession(Mutex<Option<(PgConnection, Instant)>>);

/// Session in use. It is closed unless [`keep`](Self::keep) is called, so a cancelled or failed look-up leaves no
/// session with half an answer.
pub(crate) struct SessionInUse<'a> {
    slot: MutexGuard<'a, Option<(PgConnection, Instant)>>,
    pub(crate) connection: PgConnection,
}

impl KeptSession {
    /// Takes the session, or connects.
    pub(crate) async fn take(&self, server: &Server) -> Result<SessionInUse<'_>, StoreError> {
        let mut slot = self.0.lock().await;
        let kept = match slot.take() {
            Some((connection, used)) => tested(connection, used).await,
            None => None,
        };
        let connection = match kept {
            Some(connection) => connection,
            None => server.connect(&session::LOOK_UP).await?,
        };
        Ok(SessionInUse { slot, connection })
    }
}

/// Returns the session unless it turns out to be dead. One that was used a moment ago is not tested.
async fn tested(mut connection: PgConnection, used: Instant) -> Option<PgConnection> {
    let is_alive = used.elapsed() < UNTESTED || connection.ping().await.is_ok();
    is_alive.then_some(connection)
}

impl SessionInUse<'_> {
    /// Keeps the session for the next look-up.
    pub(crate) fn keep(self) {
        let Self { mut slot, connection } = self;
        *slot = Some((connection, Instant::now()));
    }
}
