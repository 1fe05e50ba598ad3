//! Requests of clients and their results.

use bytes::Bytes;
use sqlite::signed;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row};

use crate::VerificationStore;
use crate::error::StoreError;
use crate::limits::PRUNED_AT_ONCE;
use crate::model::{JobState, NewJob, StoredJob, StoredReceipt};
use crate::rows;

/// Jobs with their statements, to be followed by a condition. The texts of requests are left out: they are much longer.
const JOBS: &str = "SELECT j.id, j.client, j.subject AS agent, j.unended, j.failed, j.reason, s.id AS entry, s.subject, s.position, s.receipt, s.statement,
    s.log_receipt, o.refused
  FROM job j LEFT JOIN statement s ON s.no = j.statement LEFT JOIN outbox o ON o.statement = s.no";
/// The condition for the job of a request.
const OF_REQUEST: &str = "j.client = ? AND j.digest = ? AND j.subject = ?";

impl VerificationStore {
    /// Stores a request, and returns its job: the earlier one if the client has made the same request about the same agent
    /// before.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn add_job(&self, new: &NewJob) -> Result<StoredJob, StoreError> {
        let subject = new.subject.as_deref().unwrap_or_default();
        let row = self
            .database
            .write(async |connection| {
                sqlx::query(
                    "INSERT INTO job (id, client, digest, subject, request, at) VALUES (?, ?, ?, ?, ?, ?)
                     ON CONFLICT (client, digest, subject) DO NOTHING",
                )
                .bind(&new.id)
                .bind(&new.client)
                .bind(&new.digest)
                .bind(subject)
                .bind(&new.request[..])
                .bind(signed(new.at))
                .execute(&mut *connection)
                .await?;
                let select = sqlx::query(AssertSqlSafe(format!("{JOBS} WHERE {OF_REQUEST}")));
                select.bind(&new.client).bind(&new.digest).bind(subject).fetch_one(connection).await
            })
            .await?;
        job_of(&row)
    }

    /// Finds the job of a client's request about an agent, or about none.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn job_of_request(
        &self,
        client: &str,
        digest: &str,
        subject: Option<&str>,
    ) -> Result<Option<StoredJob>, StoreError> {
        let select = sqlx::query(AssertSqlSafe(format!("{JOBS} WHERE {OF_REQUEST}")));
        let select = select.bind(client).bind(digest).bind(subject.unwrap_or_default());
        self.database
            .read(async |connection| select.fetch_optional(connection).await)
            .await?
            .map(|row| job_of(&row))
            .transpose()
    }

    /// Reads a job.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn job(&self, id: &str) -> Result<Option<StoredJob>, StoreError> {
        let select = sqlx::query(AssertSqlSafe(format!("{JOBS} WHERE j.id = ?"))).bind(id);
        self.database
            .read(async |connection| select.fetch_optional(connection).await)
            .await?
            .map(|row| job_of(&row))
            .transpose()
    }

    /// Reads all pending jobs, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn pending_jobs(&self) -> Result<Vec<StoredJob>, StoreError> {
        let text = format!("{JOBS} WHERE j.statement IS NULL AND j.failed IS NULL ORDER BY j.at, j.id");
        let found = self
            .database
            .read(async |connection| sqlx::query(AssertSqlSafe(text)).fetch_all(connection).await)
            .await?;
        found.iter().map(job_of).collect()
    }

    /// Records that the checks of a job begin, before they can end the process, and returns the text of its request. `None`
    /// if the job is not pending; then nothing changes.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn begin_checks(&self, id: &str) -> Result<Option<Bytes>, StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query(
                    "UPDATE job SET unended = unended + 1
                     WHERE id = ? AND statement IS NULL AND failed IS NULL RETURNING request",
                )
                .bind(id)
                .fetch_optional(connection)
                .await
            })
            .await?
            .map(|row| rows::bytes(&row, "request"))
            .transpose()
    }

    /// Records that the checks of a job ended, with whatever result.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_checks(&self, id: &str) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query("UPDATE job SET unended = 0 WHERE id = ?").bind(id).execute(connection).await
            })
            .await?;
        Ok(())
    }

    /// Records that the service stops in order: it is not the checks that end the process.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_all_checks(&self) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query("UPDATE job SET unended = 0 WHERE unended > 0").execute(connection).await
            })
            .await?;
        Ok(())
    }

    /// Marks a pending job as failed at `at` (Unix seconds), with the code of the failure and the reason. The text of the
    /// request is dropped.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn fail_job(&self, id: &str, code: &str, reason: &str, at: u64) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query(
                    "UPDATE job SET failed = ?, reason = ?, at = ?, request = x''
                     WHERE id = ? AND statement IS NULL",
                )
                .bind(code)
                .bind(reason)
                .bind(signed(at))
                .bind(id)
                .execute(connection)
                .await
            })
            .await?;
        Ok(())
    }

    /// Makes a failed job pending again, with the text of its repeated request. Returns whether it had failed: of several
    /// calls, one is told so.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn retry_job(&self, id: &str, request: &[u8]) -> Result<bool, StoreError> {
        let changed = self
            .database
            .write(async |connection| {
                sqlx::query(
                    "UPDATE job SET failed = NULL, reason = NULL, request = ?
                     WHERE id = ? AND failed IS NOT NULL",
                )
                .bind(request)
                .bind(id)
                .execute(connection)
                .await
            })
            .await?;
        Ok(changed.rows_affected() == 1)
    }

    /// Removes jobs whose statement was delivered before `before` (Unix seconds), with their statements, and those that
    /// failed before that time; a bounded number in each transaction. The ends of chains stay. Returns the number of removed
    /// jobs.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn prune(&self, before: u64) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            match self.prune_some(before).await? {
                0 => return Ok(removed),
                some => removed += some,
            }
        }
    }

    async fn prune_some(&self, before: u64) -> Result<u64, StoreError> {
        self.database
            .write(async |connection| {
                let delivered = sqlx::query(
                    "DELETE FROM statement WHERE no IN (SELECT no FROM statement WHERE delivered < ? LIMIT ?)",
                )
                .bind(signed(before))
                .bind(PRUNED_AT_ONCE)
                .execute(&mut *connection)
                .await?;
                let failed = sqlx::query(
                    "DELETE FROM job WHERE id IN (SELECT id FROM job WHERE at < ? AND failed IS NOT NULL LIMIT ?)",
                )
                .bind(signed(before))
                .bind(PRUNED_AT_ONCE)
                .execute(connection)
                .await?;
                Ok::<_, sqlx::Error>(delivered.rows_affected() + failed.rows_affected())
            })
            .await
    }
}

fn job_of(row: &SqliteRow) -> Result<StoredJob, StoreError> {
    Ok(StoredJob {
        id: rows::text(row, "id")?,
        client: rows::text(row, "client")?,
        subject: Some(rows::text(row, "agent")?).filter(|subject| !subject.is_empty()),
        unended: rows::number(row, "unended")?,
        state: state_of(row)?,
    })
}

fn state_of(row: &SqliteRow) -> Result<JobState, StoreError> {
    if let Some(code) = rows::optional_text(row, "failed")? {
        return Ok(JobState::Failed { code, reason: rows::text(row, "reason")? });
    }
    if row.try_get::<Option<Vec<u8>>, _>("entry")?.is_none() {
        return Ok(JobState::Pending);
    }
    Ok(JobState::Done(StoredReceipt {
        id: rows::digest(row, "entry")?,
        subject: rows::text(row, "subject")?,
        position: rows::optional_number(row, "position")?,
        receipt: rows::bytes(row, "receipt")?,
        statement: rows::bytes(row, "statement")?,
        log_receipt: rows::optional_bytes(row, "log_receipt")?,
        refused: rows::optional_text(row, "refused")?,
    }))
}

#[cfg(test)]
mod tests {
    use sqlx::SqliteConnection;

    use super::*;

    #[tokio::test]
    async fn all_old_jobs_are_removed_also_those_beyond_one_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let store = VerificationStore::open(&folder.path().join("v.db")).await.unwrap();
        let jobs = PRUNED_AT_ONCE + 1;
        let added = store.database.write(async |connection: &mut SqliteConnection| {
            sqlx::query(
                "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)
                 INSERT INTO job (id, client, digest, subject, request, at, failed, reason)
                 SELECT n, 'c', n, '', x'', 100, 'code', 'why' FROM number",
            )
            .bind(jobs)
            .execute(connection)
            .await
        });
        added.await.unwrap();
        assert_eq!(store.prune(101).await.unwrap(), jobs.unsigned_abs());
        store.close().await;
    }
}
