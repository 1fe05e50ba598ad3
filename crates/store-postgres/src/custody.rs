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
use crate::notices::ServerWarnings;
use crate::number::{column, columns, hash, leaves, number, rows};

pub(crate) async fn erase(
    pool: &PgPool,
    warnings: &ServerWarnings,
    entries: &[LeafIndex],
) -> Result<Erased, StoreError> {
    let entries = columns(&to_erase(entries)?);
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, "hold").await?;
    let number = next_number(&mut transaction).await?;
    expect_in_the_log(&mut transaction, &entries).await?;
    let held = held_now(&mut *transaction, &entries).await?;
    let erased: Vec<i64> = entries.into_iter().filter(|entry| !held.contains(entry)).collect();
    forget_postings(&mut transaction, number, &erased).await?;
    erase_rows(&mut transaction, &erased).await?;
    warnings.acknowledged(transaction.commit()).await?;
    Ok(Erased { erased: leaves(erased)?, held: leaves(held)? })
}

/// Notes that the postings of entries that have a statement are to be taken out of the runs of the lookup index.
async fn forget_postings(
    transaction: &mut PgTransaction<'_>,
    number: i64,
    entries: &[i64],
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO index_erased (idx, no)
           SELECT idx, $2 FROM entry
            WHERE idx = ANY($1) AND statement IS NOT NULL
             ON CONFLICT (idx) DO UPDATE SET no = excluded.no",
        entries,
        number
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

/// Erases the statement first: the triggers allow the other deletions only after that.
async fn erase_rows(transaction: &mut PgTransaction<'_>, entries: &[i64]) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE entry SET statement = NULL, facts = '{}'
          WHERE idx = ANY($1) AND (statement IS NOT NULL OR facts <> '{}')",
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!("UPDATE collateral SET bytes = NULL WHERE idx = ANY($1) AND bytes IS NOT NULL", entries)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    sqlx::query!("UPDATE report SET statement = NULL WHERE idx = ANY($1) AND statement IS NOT NULL", entries)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    sqlx::query!(
        "DELETE FROM inbox USING entry, inbox_outcome AS o
          WHERE entry.idx = ANY($1) AND inbox.digest = entry.digest
            AND o.digest = inbox.digest AND o.attempt = inbox.attempt",
        entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn hold(pool: &PgPool, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
    check_case(case)?;
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, "hold").await?;
    expect_in_the_log(&mut transaction, &[column(entry.get())]).await?;
    if !has_statement(&mut transaction, entry).await? {
        return Err(StoreError::Refused(format!("entry {entry} was erased: nothing of it can be held")));
    }
    insert_hold(&mut transaction, entry, case, at).await?;
    transaction.commit().await.map_err(store_error)
}

/// Begins a hold in the transaction of a batch, unless the case holds the entry already or the entry was erased.
/// Waits for an erasure in progress.
pub(crate) async fn begin_hold(
    transaction: &mut PgTransaction<'_>,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<(), StoreError> {
    lock(transaction, "hold").await?;
    match has_statement(transaction, entry).await? {
        true => insert_hold(transaction, entry, case, at).await,
        false => Ok(()),
    }
}

async fn has_statement(transaction: &mut PgTransaction<'_>, entry: LeafIndex) -> Result<bool, StoreError> {
    let is_there = sqlx::query_scalar!(
        r#"SELECT statement IS NOT NULL AS "there!" FROM entry WHERE idx = $1"#,
        column(entry.get())
    )
    .fetch_one(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(is_there)
}

async fn insert_hold(
    transaction: &mut PgTransaction<'_>,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO hold (idx, matter, at) VALUES ($1, $2, $3)
             ON CONFLICT (idx, matter) WHERE released_at IS NULL DO NOTHING",
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
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<bool, StoreError> {
    let released = sqlx::query!(
        "UPDATE hold SET released_at = $3
          WHERE idx = $1 AND matter = $2 AND released_at IS NULL",
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
    after: Option<LeafIndex>,
    limit: usize,
) -> Result<Vec<Hold>, StoreError> {
    sqlx::query!(
        "SELECT idx, matter, at, released_at FROM hold
          WHERE idx > $1
            AND idx <= (SELECT max(idx) FROM (SELECT idx FROM hold WHERE idx > $1
                                               ORDER BY idx LIMIT $2) AS page)
          ORDER BY idx, no",
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

pub(crate) async fn held(pool: &PgPool, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
    leaves(held_now(pool, &columns(entries)).await?)
}

pub(crate) async fn statuses(pool: &PgPool, entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError> {
    sqlx::query!(
        r#"SELECT idx, rule AS "rule?", statement IS NOT NULL AS "there!"
             FROM entry LEFT JOIN admission ON admission.number = entry.admission
            WHERE idx = ANY($1) ORDER BY idx"#,
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

async fn held_now(executor: impl sqlx::PgExecutor<'_>, entries: &[i64]) -> Result<Vec<i64>, StoreError> {
    sqlx::query_scalar!(
        "SELECT DISTINCT idx FROM hold WHERE idx = ANY($1) AND released_at IS NULL ORDER BY idx",
        entries
    )
    .fetch_all(executor)
    .await
    .map_err(store_error)
}

async fn expect_in_the_log(transaction: &mut PgTransaction<'_>, entries: &[i64]) -> Result<(), StoreError> {
    let known = sqlx::query_scalar!("SELECT idx FROM entry WHERE idx = ANY($1) ORDER BY idx", entries)
        .fetch_all(&mut **transaction)
        .await
        .map_err(store_error)?;
    match entries.iter().find(|entry| known.binary_search(entry).is_err()) {
        Some(unknown) => Err(StoreError::Refused(format!("entry {unknown} is not in the log"))),
        None => Ok(()),
    }
}

/// Takes the advisory lock of a table, until the end of the transaction.
async fn lock(transaction: &mut PgTransaction<'_>, table: &str) -> Result<(), StoreError> {
    sqlx::query!("SELECT pg_advisory_xact_lock($1::text::regclass::oid::int, 0)", table)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Stores one report at a time, so that [`REPORTS_PER_GUARD`] holds and numbers become
/// visible in order. Waits for an erasure in progress: the statement is stored only if the entry still has its
/// own.
pub(crate) async fn keep_report(pool: &PgPool, report: &Report) -> Result<bool, StoreError> {
    let guard = guard_column(&report.guard);
    let refused = report.refused.as_bytes().as_slice();
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock(&mut transaction, "hold").await?; // an erasure holds it
    lock(&mut transaction, "report").await?;
    sqlx::query!(
        "INSERT INTO report (guard, guard_key, refused, idx, registered, at, statement)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::bigint, $5::bytea, $6::bigint,
                CASE WHEN EXISTS (SELECT FROM entry WHERE idx = $4 AND statement IS NOT NULL)
                     THEN $7::bytea END
          WHERE (SELECT count(*) FROM report WHERE guard = $1) < $8
             ON CONFLICT (guard, refused) DO NOTHING",
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
        r#"SELECT EXISTS (SELECT FROM report WHERE guard = $1 AND refused = $2) AS "kept!""#,
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
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<KeptReport>, StoreError> {
    sqlx::query_as!(
        ReportRow,
        "SELECT no, guard_key, refused, idx, registered, at, statement FROM report
          WHERE no > $1 ORDER BY no LIMIT $2",
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
    registered: &[LeafIndex],
) -> Result<Vec<KeptReport>, StoreError> {
    sqlx::query_as!(
        ReportRow,
        "SELECT no, guard_key, refused, idx, registered, at, statement FROM report
          WHERE idx = ANY($1) ORDER BY no",
        &columns(registered)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(KeptReport::try_from)
    .collect()
}
