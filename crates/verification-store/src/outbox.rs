//! Statements that wait for the log.

use merkle::EntryDigest;
use sqlite::signed;
use sqlx::sqlite::SqliteRow;

use crate::VerificationStore;
use crate::error::StoreError;
use crate::model::{DeliveredEntry, WaitingStatement};
use crate::rows;

impl VerificationStore {
    /// Reads up to `limit` statements that may be sent now, in the order of signing. A chained statement follows the
    /// delivery of its predecessor. Refused ones are left out, and with them all of halted chains.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn sendable(&self, limit: usize) -> Result<Vec<WaitingStatement>, StoreError> {
        let select = sqlx::query(
            "SELECT s.id, s.issuer, s.subject, s.position, s.statement FROM outbox o JOIN statement s ON s.no = o.statement
             WHERE o.refused IS NULL
               AND NOT EXISTS (SELECT 1 FROM statement p JOIN outbox w ON w.statement = p.no
                 WHERE p.issuer = s.issuer AND p.subject = s.subject AND p.position = s.position - 1)
             ORDER BY s.no LIMIT ?",
        );
        let select = select.bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let found = self.database.read(async |connection| select.fetch_all(connection).await).await?;
        found.iter().map(statement_of).collect()
    }

    /// Removes statements from the outbox, and stores the log's receipts. Repeated deliveries change nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delivered(&self, delivered: &[DeliveredEntry]) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                for one in delivered {
                    sqlx::query(
                        "UPDATE statement SET log_receipt = coalesce(log_receipt, ?), delivered = coalesce(delivered, ?)
                         WHERE id = ?",
                    )
                    .bind(&one.receipt[..])
                    .bind(signed(one.at))
                    .bind(key(&one.id))
                    .execute(&mut *connection)
                    .await?;
                    sqlx::query(
                        "DELETE FROM outbox WHERE statement = (SELECT no FROM statement WHERE id = ?)",
                    )
                    .bind(key(&one.id))
                    .execute(&mut *connection)
                    .await?;
                }
                Ok::<_, sqlx::Error>(())
            })
            .await
    }

    /// Marks a statement that the log refuses. It is not sent until [`retry_refused`](Self::retry_refused). The reason of a halted
    /// chain stays.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn refused(&self, id: &EntryDigest, why: &str) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query(
                    "UPDATE outbox SET refused = coalesce(refused, ?)
                     WHERE statement = (SELECT no FROM statement WHERE id = ?)",
                )
                .bind(why)
                .bind(key(id))
                .execute(connection)
                .await
            })
            .await?;
        Ok(())
    }

    /// Makes refused statements pending again, except those of halted chains; returns their number.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn retry_refused(&self) -> Result<u64, StoreError> {
        self.database
            .write(async |connection| {
                let retried = sqlx::query(
                    "UPDATE outbox SET refused = NULL WHERE refused IS NOT NULL AND statement NOT IN (
                       SELECT s.no FROM statement s JOIN chain c ON c.issuer = s.issuer AND c.subject = s.subject
                       WHERE c.halted IS NOT NULL AND s.position IS NOT NULL)",
                );
                Ok::<_, sqlx::Error>(retried.execute(connection).await?.rows_affected())
            })
            .await
    }

    /// Counts the statements that wait for the log, without and with a refusal.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn backlog(&self) -> Result<(u64, u64), StoreError> {
        let select =
            sqlx::query("SELECT count(*) - count(refused) AS waiting, count(refused) AS refused FROM outbox");
        let row = self.database.read(async |connection| select.fetch_one(connection).await).await?;
        Ok((rows::number(&row, "waiting")?, rows::number(&row, "refused")?))
    }
}

fn statement_of(row: &SqliteRow) -> Result<WaitingStatement, StoreError> {
    Ok(WaitingStatement {
        id: rows::digest(row, "id")?,
        issuer: rows::text(row, "issuer")?,
        subject: rows::text(row, "subject")?,
        position: rows::optional_number(row, "position")?,
        statement: rows::bytes(row, "statement")?,
    })
}

fn key(id: &EntryDigest) -> &[u8] {
    &id.as_bytes()[..]
}
