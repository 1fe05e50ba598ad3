//! `EvidenceStore::commit`: one statement on a connection of its own.
//!
//! Until the statement is sent it has had no effect. After that, an error of the statement proves that it did not
//! happen and an answer that it did; in all other cases the outcome is unknown. [`happened`](CommitSession::happened)
//! then raises the instance's epoch: that update waits for the doubtful commit, which holds the row while it runs,
//! and a commit under the old epoch that the server reads later matches no row.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use evidence::{CommitError, Group, StoreError};
use sqlx::{PgConnection, Row};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::{commit_error, is_stale, is_worth_another_try, of_failure, store_error, too_late};
use crate::instance::Registration;
use crate::limits;
use crate::number::column;
use crate::session::{self, Server, close};

/// Session that commits, kept between commits. A caller takes it out and puts it back only when it is known to be
/// idle, so a cancelled caller leaves no session with a running statement.
#[derive(Debug)]
pub(crate) struct CommitSession {
    session: Mutex<Option<DurableSession>>,
    registration: Arc<Registration>,
    epoch: AtomicI64,
    commit_timeout: Duration,
}

/// Session whose commits are durable, as far as its settings say.
#[derive(Debug)]
struct DurableSession {
    connection: PgConnection,
    checked: Instant,
}

impl CommitSession {
    pub(crate) fn new(registration: Arc<Registration>, commit_timeout: Duration) -> Self {
        Self { session: Mutex::new(None), registration, epoch: AtomicI64::new(0), commit_timeout }
    }

    pub(crate) async fn commit(&self, server: &Server, group: &Group<'_>) -> Result<(), CommitError> {
        let mut session = self.session.lock().await;
        let rows = GroupColumns::of(group);
        for _ in 1..limits::TRIES {
            match self.try_commit(&mut session, server, &rows).await {
                Err(AttemptFailure::Transient(error)) => tracing::debug!(%error, "a commit is tried again"),
                Err(AttemptFailure::Final(error)) => return Err(error),
                Ok(conflicts) => return answer(conflicts),
            }
        }
        match self.try_commit(&mut session, server, &rows).await {
            Err(AttemptFailure::Transient(error)) => Err(store_error(error).into()),
            Err(AttemptFailure::Final(error)) => Err(error),
            Ok(conflicts) => answer(conflicts),
        }
    }

    async fn try_commit(
        &self,
        session: &mut Option<DurableSession>,
        server: &Server,
        rows: &GroupColumns<'_>,
    ) -> Result<Vec<String>, AttemptFailure> {
        let durable = timeout(limits::ANSWER, durable_session(session.take(), server)).await;
        let durable = durable.unwrap_or_else(|_| Err(too_late("the check before a commit")));
        let mut durable = durable.map_err(|error| AttemptFailure::Final(of_new_session(error).into()))?;
        let (me, epoch) = (self.registration.number(), self.epoch.load(Ordering::Acquire));
        let sent = rows.send(&mut durable.connection, me, epoch);
        match timeout(self.commit_timeout, sent).await {
            Ok(Ok(conflicts)) => {
                *session = Some(durable);
                Ok(conflicts)
            }
            Ok(Err(error)) if is_worth_another_try(&error) => {
                *session = Some(durable);
                Err(AttemptFailure::Transient(error))
            }
            Ok(Err(error)) if is_stale(&error) => {
                self.adopt_registration(&mut durable.connection).await.map_err(AttemptFailure::Final)?;
                *session = Some(durable);
                Err(AttemptFailure::Transient(error))
            }
            // Another session may do better: one that began read-only stays so.
            Ok(Err(error)) => Err(AttemptFailure::Final(commit_error(error))),
            Err(_) => Err(AttemptFailure::Final(CommitError::MayHaveHappened("no answer in time".into()))),
        }
    }

    /// Takes over the number and the epoch that the database has, and registers the instance again if it has none. To be
    /// called by the holder of the session after a commit that matched no row: no earlier commit can take effect any more.
    async fn adopt_registration(&self, connection: &mut PgConnection) -> Result<(), CommitError> {
        let restored = timeout(limits::ANSWER, self.registration.restore(connection)).await;
        let epoch = restored.unwrap_or_else(|_| Err(too_late("the registration of this instance")))?;
        self.epoch.store(epoch, Ordering::Release);
        Ok(())
    }

    pub(crate) async fn happened(&self, server: &Server, group: &Group<'_>) -> Result<bool, StoreError> {
        // The lock is held until the commit is settled, so that no other commit is sent under the old epoch
        // meanwhile.
        let mut session = self.session.lock().await;
        drop(session.take());
        let mut connection = server.connect(&session::DOUBTER).await?;
        let answer = timeout(limits::DOUBT, self.was_committed(&mut connection, group)).await;
        close(connection).await;
        answer.map_err(|_| too_late("waiting for a commit in doubt"))?
    }

    async fn was_committed(
        &self,
        connection: &mut PgConnection,
        group: &Group<'_>,
    ) -> Result<bool, StoreError> {
        let raise = sqlx::query_scalar("UPDATE instance SET epoch = epoch + 1 WHERE no = $1 RETURNING epoch");
        let raise = raise.bind(self.registration.number()).fetch_optional(&mut *connection);
        let epoch = match raise.await.map_err(store_error)? {
            Some(epoch) => epoch,
            // Without the row, no commit runs or can take effect.
            None => self.registration.restore(&mut *connection).await?,
        };
        self.epoch.store(epoch, Ordering::Release);
        if let Some(record) = group.records.first() {
            let select = sqlx::query_scalar("SELECT EXISTS (SELECT FROM record WHERE id = $1)");
            let select = select.bind(&record.id.as_bytes()[..]);
            return select.fetch_one(connection).await.map_err(store_error);
        }
        let names: Vec<&str> = group.moves.iter().map(|moved| moved.stream).collect();
        let tos: Vec<i64> = group.moves.iter().map(|moved| column(moved.to)).collect();
        let select = sqlx::query_scalar(
            "SELECT count(*) = cardinality($1) AND count(*) > 0
               FROM unnest($1, $2) AS m (name, version) JOIN stream s ON s.name = m.name AND s.version = m.version",
        );
        select.bind(&names).bind(&tos).fetch_one(connection).await.map_err(store_error)
    }
}

/// Returns the kept session if its settings were checked lately or still are as they must be, else a new one.
async fn durable_session(
    kept: Option<DurableSession>,
    server: &Server,
) -> Result<DurableSession, StoreError> {
    if let Some(kept) = kept {
        if kept.checked.elapsed() < limits::CHECKED {
            return Ok(kept);
        }
        // It may have died, or have settings that a new one has not.
        if let Ok(kept) = checked(kept.connection).await {
            return Ok(kept);
        }
    }
    new_session(server).await
}

/// Opens a session that commits, and checks its settings.
async fn new_session(server: &Server) -> Result<DurableSession, StoreError> {
    checked(server.connect(&session::WRITER).await?).await
}

/// Checks a session's settings.
async fn checked(mut connection: PgConnection) -> Result<DurableSession, StoreError> {
    postgres::check_durability(&mut connection, &session::WRITER).await.map_err(of_failure)?;
    Ok(DurableSession { connection, checked: Instant::now() })
}

/// Maps the error of a new session. What the server refuses, such as a password, or the check, is unavailable until an
/// administrator changes it: no single commit is the cause.
fn of_new_session(error: StoreError) -> StoreError {
    match error {
        StoreError::Refused(why) => StoreError::Unavailable(why),
        other => other,
    }
}

fn answer(mut conflicts: Vec<String>) -> Result<(), CommitError> {
    conflicts.sort_unstable();
    if conflicts.is_empty() { Ok(()) } else { Err(CommitError::Conflict(conflicts)) }
}

/// Reason why one attempt to commit failed.
enum AttemptFailure {
    /// A cause that another attempt may not meet; nothing was changed.
    Transient(sqlx::Error),
    Final(CommitError),
}

/// Group as the arrays that the SQL function `commit_group` takes.
struct GroupColumns<'a> {
    group: &'a Group<'a>,
    /// Number of each stream's move in the group, from 1.
    numbers: HashMap<&'a str, i32>,
}

impl<'a> GroupColumns<'a> {
    fn of(group: &'a Group<'a>) -> Self {
        let numbers = (1..).zip(&group.moves).map(|(number, moved)| (moved.stream, number)).collect();
        Self { group, numbers }
    }

    fn number_of(&self, stream: &str) -> i32 {
        // A group has a move for each stream that it mentions.
        self.numbers.get(stream).copied().unwrap_or_default()
    }

    /// Calls `commit_group` and returns the streams that are not as the group requires. Reads to the end of the
    /// answer, which the server sends after the commit.
    async fn send(
        &self,
        connection: &mut PgConnection,
        me: i64,
        epoch: i64,
    ) -> Result<Vec<String>, sqlx::Error> {
        let (moves, records, claims) = (&self.group.moves, &self.group.records, &self.group.claims);
        let query = sqlx::query(
            "SELECT commit_group($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                                 $20, $21, $22, $23, $24, $25, $26)",
        );
        let query = query
            .bind(me)
            .bind(epoch)
            .bind(each(moves, |moved| moved.stream))
            .bind(each(moves, |moved| moved.from.map(column)))
            .bind(each(moves, |moved| column(moved.to)))
            .bind(each(moves, |moved| moved.first_seq.map(column)))
            .bind(each(moves, |moved| column(moved.records)))
            .bind(each(moves, |moved| moved.closed))
            .bind(each(moves, |moved| moved.keep_until.map(column)))
            .bind(each(moves, |moved| &moved.running[..]))
            .bind(each(moves, |moved| moved.agreed.map(|agreed| &agreed[..])));
        let query = query
            .bind(each(records, |record| self.number_of(&record.stream)))
            .bind(each(records, |record| &record.id.as_bytes()[..]))
            .bind(each(records, |record| column(record.seq)))
            .bind(each(records, |record| record.kind.as_str()))
            .bind(each(records, |record| column(record.at)))
            .bind(each(records, |record| &record.statement[..]))
            .bind(each(records, |record| record.verdict.as_deref()))
            .bind(each(records, |record| &record.annex[..]));
        let query = query
            .bind(each(&self.group.opened, |id| &id.as_bytes()[..]))
            .bind(each(&self.group.settled, |id| &id.as_bytes()[..]))
            .bind(each(claims, |claim| self.number_of(&claim.stream)))
            .bind(each(claims, |claim| claim.kind.number()))
            .bind(each(claims, |claim| &claim.key[..]))
            .bind(each(&self.group.relied_on, |read| read.stream.as_str()))
            .bind(each(&self.group.relied_on, |read| read.version.map(column)));
        let rows = query.fetch_all(connection).await?;
        rows.first().map_or(Ok(Vec::new()), |row| row.try_get(0))
    }
}

fn each<'a, T, C>(rows: &'a [T], of: impl Fn(&'a T) -> C) -> Vec<C> {
    rows.iter().map(of).collect()
}

/// Reads the settings in a new session like the one that commits.
pub(crate) async fn check_durability(server: &Server) -> Result<(), StoreError> {
    close(new_session(server).await?.connection).await;
    Ok(())
}
