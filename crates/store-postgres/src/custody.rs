//! `Custody` and `Reports` in PostgreSQL. Triggers forbid wrong changes; this module makes the right ones in the
//! order that the triggers expect.
//!
//! An erasure, a hold or a report first takes an advisory lock of the table concerned until the end of the
//! transaction, so that two of them never act on rows that they cannot see of each other. An erasure also takes
//! a number of the lookup index, so that no run with postings of the entry is completed after it. A report
//! waits for an erasure, so that no statement is stored for an erased entry.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlx::{PgPool, PgTransaction};
use store::custody::{check_case, to_erase};
use store::{EntryStatus, Erased, GuardKey, Hold, KeptReport, REPORTS_PER_GUARD, Report, StoreError};

use crate::entry::guard_column;
use crate::error::store_error;
use crate::lookup::next_number;
use crate::number::{column, columns, hash, leaves, number, rows};

pub(crate) async fn erase(pool: &PgPool, log: i16, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
    let entries = columns(&to_erase(entries)?);
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, log, "hold").await?;
    let number = next_number(&mut transaction, log).await?;
    expect_in_the_log(&mut transaction, log, &entries).await?;
    let held = held_now(&mut *transaction, log, &entries).await?;
    let erased: Vec<i64> = entries.into_iter().filter(|entry| !held.contains(entry)).collect();
    forget_postings(&mut transaction, log, number, &erased).await?;
    erase_rows(&mut transaction, log, &erased).await?;
    transaction.commit().await.map_err(store_error)?;
    Ok(Erased { erased: leaves(erased)?, held: leaves(held)? })
}

/// Notes that the postings of entries that have a statement are to be taken out of the runs of the lookup index.
async fn forget_postings(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    number: i64,
    entries: &[i64],
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO index_erased (log_id, idx, no)
           SELECT log_id, idx, $3 FROM entry
            WHERE log_id = $1 AND idx = ANY($2) AND statement IS NOT NULL
             ON CONFLICT (log_id, idx) DO UPDATE SET no = excluded.no",
        log,
        entries,
        number
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

/// Erases the statement first: the triggers allow the other deletions only after that.
async fn erase_rows(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    entries: &[i64],
) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE entry SET statement = NULL, facts = '{}'
          WHERE log_id = $1 AND idx = ANY($2) AND (statement IS NOT NULL OR facts <> '{}')",
        log,
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!(
        "UPDATE collateral SET bytes = NULL WHERE log_id = $1 AND idx = ANY($2) AND bytes IS NOT NULL",
        log,
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!(
        "UPDATE report SET statement = NULL WHERE log_id = $1 AND idx = ANY($2) AND statement IS NOT NULL",
        log,
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!(
        "DELETE FROM inbox USING entry, inbox_outcome AS o
          WHERE entry.log_id = $1 AND entry.idx = ANY($2) AND inbox.log_id = $1 AND inbox.digest = entry.digest
            AND o.log_id = $1 AND o.digest = inbox.digest AND o.attempt = inbox.attempt",
        log,
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn hold(
    pool: &PgPool,
    log: i16,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<(), StoreError> {
    check_case(case)?;
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, log, "hold").await?;
    expect_in_the_log(&mut transaction, log, &[column(entry.get())]).await?;
    if !has_statement(&mut transaction, log, entry).await? {
        return Err(StoreError::Refused(format!("entry {entry} was erased: nothing of it can be held")));
    }
    insert_hold(&mut transaction, log, entry, case, at).await?;
    transaction.commit().await.map_err(store_error)
}

/// Begins a hold in the transaction of a batch, unless the case holds the entry already or the entry was erased.
/// Waits for an erasure in progress.
pub(crate) async fn begin_hold(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<(), StoreError> {
    lock(transaction, log, "hold").await?;
    match has_statement(transaction, log, entry).await? {
        true => insert_hold(transaction, log, entry, case, at).await,
        false => Ok(()),
    }
}

async fn has_statement(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    entry: LeafIndex,
) -> Result<bool, StoreError> {
    let is_there = sqlx::query_scalar!(
        r#"SELECT statement IS NOT NULL AS "there!" FROM entry WHERE log_id = $1 AND idx = $2"#,
        log,
        column(entry.get())
    )
    .fetch_one(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(is_there)
}

async fn insert_hold(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO hold (log_id, idx, matter, at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (log_id, idx, matter) WHERE released_at IS NULL DO NOTHING",
        log,
        column(entry.get()),
        case,
        column(at)
    )
    .execute(&mut **transaction)
    .await
    .map(drop)
    .map_err(store_error)
}

/// Ends the hold of a case; returns whether there was one.
pub(crate) async fn end_hold(
    executor: impl sqlx::PgExecutor<'_>,
    log: i16,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<bool, StoreError> {
    let released = sqlx::query!(
        "UPDATE hold SET released_at = $4
          WHERE log_id = $1 AND idx = $2 AND matter = $3 AND released_at IS NULL",
        log,
        column(entry.get()),
        case,
        column(at)
    )
    .execute(executor)
    .await
    .map_err(store_error)?;
    Ok(released.rows_affected() > 0)
}

pub(crate) async fn holds(
    pool: &PgPool,
    log: i16,
    after: Option<LeafIndex>,
    limit: usize,
) -> Result<Vec<Hold>, StoreError> {
    sqlx::query!(
        "SELECT idx, matter, at, released_at FROM hold
          WHERE log_id = $1 AND idx > $2
            AND idx <= (SELECT max(idx) FROM (SELECT idx FROM hold WHERE log_id = $1 AND idx > $2
                                               ORDER BY idx LIMIT $3) AS page)
          ORDER BY idx, no",
        log,
        after.map_or(-1, |entry| column(entry.get())),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| {
        Ok(Hold {
            entry: LeafIndex::new(number(row.idx)?),
            case: row.matter,
            at: number(row.at)?,
            released: row.released_at.map(number).transpose()?,
        })
    })
    .collect()
}

pub(crate) async fn held(
    pool: &PgPool,
    log: i16,
    entries: &[LeafIndex],
) -> Result<Vec<LeafIndex>, StoreError> {
    leaves(held_now(pool, log, &columns(entries)).await?)
}

pub(crate) async fn statuses(
    pool: &PgPool,
    log: i16,
    entries: &[LeafIndex],
) -> Result<Vec<EntryStatus>, StoreError> {
    sqlx::query!(
        r#"SELECT idx, rule AS "rule?", statement IS NOT NULL AS "there!"
             FROM entry LEFT JOIN admission ON admission.log_id = $1 AND admission.number = entry.admission
            WHERE entry.log_id = $1 AND idx = ANY($2) ORDER BY idx"#,
        log,
        &columns(entries)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| {
        let entry = LeafIndex::new(number(row.idx)?);
        let rule = row.rule.ok_or_else(|| StoreError::Damaged(format!("entry {entry} names no rule")))?;
        Ok(EntryStatus { entry, rule, has_statement: row.there })
    })
    .collect()
}

async fn held_now(
    executor: impl sqlx::PgExecutor<'_>,
    log: i16,
    entries: &[i64],
) -> Result<Vec<i64>, StoreError> {
    sqlx::query_scalar!(
        "SELECT DISTINCT idx FROM hold WHERE log_id = $1 AND idx = ANY($2) AND released_at IS NULL ORDER BY idx",
        log,
        entries
    )
    .fetch_all(executor)
    .await
    .map_err(store_error)
}

async fn expect_in_the_log(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    entries: &[i64],
) -> Result<(), StoreError> {
    let known = sqlx::query_scalar!(
        "SELECT idx FROM entry WHERE log_id = $1 AND idx = ANY($2) ORDER BY idx",
        log,
        entries
    )
    .fetch_all(&mut **transaction)
    .await
    .map_err(store_error)?;
    match entries.iter().find(|entry| known.binary_search(entry).is_err()) {
        Some(unknown) => Err(StoreError::Refused(format!("entry {unknown} is not in the log"))),
        None => Ok(()),
    }
}

/// Takes the advisory lock of a table of this log, until the end of the transaction.
async fn lock(transaction: &mut PgTransaction<'_>, log: i16, table: &str) -> Result<(), StoreError> {
    sqlx::query!("SELECT pg_advisory_xact_lock($2::text::regclass::oid::int, $1)", i32::from(log), table)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Stores one report at a time, so that [`REPORTS_PER_GUARD`] holds and numbers become
/// visible in order. Waits for an erasure in progress: the statement is stored only if the entry still has its
/// own.
pub(crate) async fn keep_report(pool: &PgPool, log: i16, report: &Report) -> Result<bool, StoreError> {
    let guard = guard_column(&report.guard);
    let refused = report.refused.as_bytes().as_slice();
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, log, "hold").await?; // an erasure holds it
    lock(&mut transaction, log, "report").await?;
    sqlx::query!(
        "INSERT INTO report (log_id, guard, guard_key, refused, idx, registered, at, statement)
         SELECT $1, $2::bytea, $3::bytea, $4::bytea, $5::bigint, $6::bytea, $7::bigint,
                CASE WHEN EXISTS (SELECT FROM entry WHERE log_id = $1 AND idx = $5 AND statement IS NOT NULL)
                     THEN $8::bytea END
          WHERE (SELECT count(*) FROM report WHERE log_id = $1 AND guard = $2) < $9
             ON CONFLICT (log_id, guard, refused) DO NOTHING",
        log,
        &guard,
        report.guard.0,
        refused,
        column(report.registered.0.get()),
        report.registered.1.as_bytes(),
        column(report.at),
        report.statement.as_deref(),
        rows(REPORTS_PER_GUARD)
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    let kept = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM report WHERE log_id = $1 AND guard = $2 AND refused = $3) AS "kept!""#,
        log,
        &guard,
        refused
    )
    .fetch_one(&mut *transaction)
    .await
    .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)?;
    Ok(kept)
}

struct ReportRow {
    no: i64,
    guard_key: Vec<u8>,
    refused: Vec<u8>,
    idx: i64,
    registered: Vec<u8>,
    at: i64,
    statement: Option<Vec<u8>>,
}

impl TryFrom<ReportRow> for KeptReport {
    type Error = StoreError;

    fn try_from(row: ReportRow) -> Result<Self, StoreError> {
        let digest = |column: &[u8]| hash(column).map(EntryDigest::from_bytes);
        let report = Report {
            guard: GuardKey(row.guard_key),
            registered: (LeafIndex::new(number(row.idx)?), digest(&row.registered)?),
            refused: digest(&row.refused)?,
            statement: row.statement.map(Bytes::from),
            at: number(row.at)?,
        };
        Ok(Self { number: number(row.no)?, report })
    }
}

pub(crate) async fn reports(
    pool: &PgPool,
    log: i16,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<KeptReport>, StoreError> {
    sqlx::query_as!(
        ReportRow,
        "SELECT no, guard_key, refused, idx, registered, at, statement FROM report
          WHERE log_id = $1 AND no > $2 ORDER BY no LIMIT $3",
        log,
        after.map_or(-1, column),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(KeptReport::try_from)
    .collect()
}

pub(crate) async fn reports_about(
    pool: &PgPool,
    log: i16,
    registered: &[LeafIndex],
) -> Result<Vec<KeptReport>, StoreError> {
    sqlx::query_as!(
        ReportRow,
        "SELECT no, guard_key, refused, idx, registered, at, statement FROM report
          WHERE log_id = $1 AND idx = ANY($2) ORDER BY no",
        log,
        &columns(registered)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(KeptReport::try_from)
    .collect()
}
