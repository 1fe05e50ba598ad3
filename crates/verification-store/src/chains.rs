//! Ends of receipt chains, and the transaction that stores a receipt.

use sqlite::signed;
use sqlx::{Row, SqliteConnection};

use crate::VerificationStore;
use crate::error::{StoreError, WriteError};
use crate::model::{ChainEnd, NewReceipt};
use crate::rows;

impl VerificationStore {
    /// Reads the end of a chain; `None` if this database has never known it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn chain(&self, issuer: &str, subject: &str) -> Result<Option<ChainEnd>, StoreError> {
        let select = sqlx::query("SELECT next, last, halted FROM chain WHERE issuer = ? AND subject = ?")
            .bind(issuer)
            .bind(subject);
        let row = self.database.read(async |connection| select.fetch_optional(connection).await).await?;
        row.map(|row| {
            Ok(ChainEnd {
                next: rows::number(&row, "next")?,
                last: rows::optional_digest(&row, "last")?,
                halted: rows::optional_text(&row, "halted")?,
            })
        })
        .transpose()
    }

    /// Stores the end of a chain that was found in the log. A chain that this database knows stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn adopt_chain(&self, issuer: &str, subject: &str, end: &ChainEnd) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query(
                    "INSERT INTO chain (issuer, subject, next, last, halted) VALUES (?, ?, ?, ?, ?)
                     ON CONFLICT (issuer, subject) DO NOTHING",
                )
                .bind(issuer)
                .bind(subject)
                .bind(signed(end.next))
                .bind(end.last.map(|last| last.as_bytes().to_vec()))
                .bind(end.halted.as_deref())
                .execute(connection)
                .await
            })
            .await?;
        Ok(())
    }

    /// Halts a chain for good: no further receipt is signed, and those that wait are refused. The first reason stays.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn halt_chain(&self, issuer: &str, subject: &str, why: &str) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                sqlx::query("UPDATE chain SET halted = coalesce(halted, ?) WHERE issuer = ? AND subject = ?")
                    .bind(why)
                    .bind(issuer)
                    .bind(subject)
                    .execute(&mut *connection)
                    .await?;
                refuse_of_halted_chains(connection).await
            })
            .await
    }

    /// Counts the halted chains.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn halted_chains(&self) -> Result<u64, StoreError> {
        let select = sqlx::query("SELECT count(*) AS n FROM chain WHERE halted IS NOT NULL");
        rows::number(&self.database.read(async |connection| select.fetch_one(connection).await).await?, "n")
    }

    /// Stores the receipt that ends a job, moves its chain to the next position, and puts the statement into the outbox,
    /// in one transaction. The text of the request is dropped: it is much longer than the receipt.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the chain is not at this position or is halted, or if the job is not pending;
    /// [`StoreError::Unavailable`] if the outcome is unknown.
    pub async fn conclude(&self, job: &str, receipt: &NewReceipt) -> Result<(), StoreError> {
        self.database
            .write(async |connection| {
                if let Some(position) = receipt.position {
                    advance(connection, receipt, position).await?;
                }
                let no = insert(connection, receipt).await?;
                end_job(connection, job, no).await
            })
            .await
    }
}

/// Refuses the statements of halted chains that wait for the log: it takes none of them, because each names a predecessor
/// that it does not have.
async fn refuse_of_halted_chains(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let refuse = sqlx::query(
        "UPDATE outbox SET refused = c.halted
         FROM statement s JOIN chain c ON c.issuer = s.issuer AND c.subject = s.subject
         WHERE outbox.statement = s.no AND outbox.refused IS NULL
           AND c.halted IS NOT NULL AND s.position IS NOT NULL",
    );
    refuse.execute(connection).await.map(drop)
}

/// Moves a chain over the receipt's position.
async fn advance(
    connection: &mut SqliteConnection,
    receipt: &NewReceipt,
    position: u64,
) -> Result<(), WriteError> {
    let moved = sqlx::query(
        "UPDATE chain SET next = next + 1, last = ?
         WHERE issuer = ? AND subject = ? AND next = ? AND halted IS NULL",
    )
    .bind(&receipt.id.as_bytes()[..])
    .bind(&receipt.issuer)
    .bind(&receipt.subject)
    .bind(signed(position))
    .execute(connection)
    .await?;
    one_row(moved.rows_affected(), "the chain is at another position, or halted")
}

/// Inserts the statement into its table and the outbox; returns its number.
async fn insert(connection: &mut SqliteConnection, receipt: &NewReceipt) -> Result<i64, sqlx::Error> {
    let NewReceipt { id, issuer, subject, position, at, receipt, statement } = receipt;
    let row = sqlx::query(
        "INSERT INTO statement (id, issuer, subject, position, at, receipt, statement)
         VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING no",
    )
    .bind(&id.as_bytes()[..])
    .bind(issuer)
    .bind(subject)
    .bind(position.map(signed))
    .bind(signed(*at))
    .bind(&receipt[..])
    .bind(&statement[..])
    .fetch_one(&mut *connection)
    .await?;
    let no: i64 = row.try_get("no")?;
    sqlx::query("INSERT INTO outbox (statement) VALUES (?)").bind(no).execute(connection).await?;
    Ok(no)
}

/// Ends a pending job.
async fn end_job(connection: &mut SqliteConnection, job: &str, no: i64) -> Result<(), WriteError> {
    let ended = sqlx::query(
        "UPDATE job SET statement = ?, request = x'' WHERE id = ? AND statement IS NULL AND failed IS NULL",
    )
    .bind(no)
    .bind(job)
    .execute(connection)
    .await?;
    one_row(ended.rows_affected(), "the job is not pending")
}

fn one_row(changed: u64, otherwise: &'static str) -> Result<(), WriteError> {
    match changed {
        1 => Ok(()),
        _ => Err(WriteError::Contradiction(otherwise)),
    }
}
