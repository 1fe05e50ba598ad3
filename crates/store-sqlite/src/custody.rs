//! `Custody` and `Reports` in SQLite. Triggers forbid wrong changes; this module makes the right ones in the order
//! that the triggers expect.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlite::{Script, select_in};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection};
use store::custody::{check_case, to_erase};
use store::{EntryStatus, Erased, GuardKey, Hold, KeptReport, REPORTS_PER_GUARD, Report, StoreError};

use crate::lookup::next_number;
use crate::reader::{blob, number};
use crate::sql::{self, signed, store_error, unsigned};
use crate::transaction::{self, IMMEDIATE};
use crate::{Sqlite, journal, reader};

pub(crate) async fn erase(store: &Sqlite, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
    let entries = to_erase(entries)?;
    journal::keep_no_journal(store).await?;
    let erased = erase_all(store, entries).await;
    journal::empty_the_log(store).await;
    erased
}

async fn erase_all(store: &Sqlite, entries: Vec<LeafIndex>) -> Result<Erased, StoreError> {
    let mut answer = Erased::default();
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    for index in entries {
        if !is_in_the_log(&mut transaction, index).await? {
            return Err(not_in_the_log(index));
        }
        if is_held(&mut transaction, index).await? {
            answer.held.push(index);
        } else {
            erase_one(&mut transaction, index).await?;
            answer.erased.push(index);
        }
    }
    transaction::finish(store, transaction).await?;
    Ok(answer)
}

/// Statements of an erasure. The entry is first: the triggers allow the other deletions only after that.
const ERASE: [&str; 4] = [
    "UPDATE entry SET statement = NULL, facts = '{}'
      WHERE idx = ? AND (statement IS NOT NULL OR facts <> '{}')",
    "DELETE FROM collateral WHERE idx = ?",
    "UPDATE report SET statement = NULL WHERE idx = ? AND statement IS NOT NULL",
    "DELETE FROM inbox WHERE attempt IN
       (SELECT o.attempt FROM inbox_outcome o JOIN entry e ON o.digest = e.digest WHERE e.idx = ?)",
];

async fn erase_one(connection: &mut SqliteConnection, index: LeafIndex) -> Result<(), StoreError> {
    if !is_erased(&mut *connection, index).await? {
        forget_postings(&mut *connection, index).await?;
    }
    for statement in ERASE {
        let query = sqlx::query(statement).bind(signed(index.get()));
        query.execute(&mut *connection).await.map_err(store_error)?;
    }
    Ok(())
}

/// Notes that the entry's postings are to be taken out of the runs of the lookup index.
async fn forget_postings(connection: &mut SqliteConnection, index: LeafIndex) -> Result<(), StoreError> {
    let number = next_number(&mut *connection).await?;
    let query = sqlx::query("INSERT OR REPLACE INTO index_erased (idx, no) VALUES (?, ?)");
    let query = query.bind(signed(index.get())).bind(number);
    query.execute(connection).await.map(drop).map_err(store_error)
}

pub(crate) async fn hold(store: &Sqlite, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
    check_case(case)?;
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    if !is_in_the_log(&mut transaction, entry).await? {
        return Err(not_in_the_log(entry));
    }
    if is_erased(&mut transaction, entry).await? {
        return Err(StoreError::Refused(format!("entry {entry} was erased: nothing of it can be held")));
    }
    let mut script = Script::default();
    begin_hold(&mut script, entry, case, at);
    transaction::run(script, &mut transaction).await?;
    transaction::finish(store, transaction).await
}

/// Begins a hold, unless the case holds the entry already or the entry was erased.
pub(crate) fn begin_hold(script: &mut Script, entry: LeafIndex, case: &str, at: u64) {
    script.add_with(
        "INSERT INTO hold (idx, matter, at) SELECT ?, ?, ?
          WHERE NOT EXISTS (SELECT 1 FROM entry WHERE idx = ? AND statement IS NULL)
            AND NOT EXISTS (SELECT 1 FROM hold WHERE idx = ? AND matter = ? AND released_at IS NULL)",
        |values| {
            values.bind(signed(entry.get())).bind(case).bind(signed(at));
            values.bind(signed(entry.get())).bind(signed(entry.get())).bind(case);
        },
    );
}

/// Ends the hold of a case, if there is one; the statement returns a row then.
pub(crate) fn end_hold(script: &mut Script, entry: LeafIndex, case: &str, at: u64) {
    script.add_with(
        "UPDATE hold SET released_at = ? WHERE idx = ? AND matter = ? AND released_at IS NULL RETURNING no",
        |values| _ = values.bind(signed(at)).bind(signed(entry.get())).bind(case),
    );
}

/// Ends the hold of a case; returns whether there was one.
pub(crate) async fn release(
    store: &Sqlite,
    entry: LeafIndex,
    case: &str,
    at: u64,
) -> Result<bool, StoreError> {
    let mut connection = store.writable().await?.acquire().await.map_err(store_error)?;
    let mut script = Script::default();
    end_hold(&mut script, entry, case, at);
    Ok(!transaction::run(script, &mut connection).await?.is_empty())
}

pub(crate) async fn holds(
    pool: &SqlitePool,
    after: Option<LeafIndex>,
    limit: usize,
) -> Result<Vec<Hold>, StoreError> {
    let query = sqlx::query(
        "SELECT idx, matter, at, released_at FROM hold
         WHERE idx > ?1 AND idx <= (SELECT max(idx) FROM
           (SELECT idx FROM hold WHERE idx > ?1 ORDER BY idx LIMIT ?2))
         ORDER BY idx, no",
    );
    let query = query.bind(after.map_or(-1, |entry| signed(entry.get()))).bind(signed(limit as u64));
    let hold = |row: &SqliteRow| {
        Ok(Hold {
            entry: LeafIndex::new(number(row, 0)?),
            case: row.try_get(1).map_err(store_error)?,
            at: number(row, 2)?,
            released: row.try_get::<Option<i64>, _>(3).map_err(store_error)?.map(unsigned).transpose()?,
        })
    };
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(hold).collect()
}

pub(crate) async fn held(pool: &SqlitePool, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
    let mut connection = pool.acquire().await.map_err(store_error)?;
    let mut held = Vec::new();
    for entry in entries {
        if is_held(&mut connection, *entry).await? {
            held.push(*entry);
        }
    }
    held.sort_unstable();
    held.dedup();
    Ok(held)
}

pub(crate) async fn statuses(
    pool: &SqlitePool,
    entries: &[LeafIndex],
) -> Result<Vec<EntryStatus>, StoreError> {
    let select = "SELECT idx, rule, statement IS NOT NULL FROM entry WHERE idx IN";
    let rows = select_in(pool, select, &reader::columns(entries)).await.map_err(store_error)?;
    let status = |row: &SqliteRow| {
        Ok(EntryStatus {
            entry: LeafIndex::new(number(row, 0)?),
            rule: row.try_get(1).map_err(store_error)?,
            has_statement: row.try_get(2).map_err(store_error)?,
        })
    };
    let mut found: Vec<EntryStatus> = rows.iter().map(status).collect::<Result<_, StoreError>>()?;
    found.sort_by_key(|status| status.entry);
    found.dedup_by_key(|status| status.entry);
    Ok(found)
}

async fn is_held(connection: &mut SqliteConnection, entry: LeafIndex) -> Result<bool, StoreError> {
    let query = "SELECT EXISTS (SELECT 1 FROM hold WHERE idx = ? AND released_at IS NULL)";
    ask(connection, query, entry).await
}

async fn is_in_the_log(connection: &mut SqliteConnection, entry: LeafIndex) -> Result<bool, StoreError> {
    ask(connection, "SELECT EXISTS (SELECT 1 FROM entry WHERE idx = ?)", entry).await
}

async fn is_erased(connection: &mut SqliteConnection, entry: LeafIndex) -> Result<bool, StoreError> {
    ask(connection, "SELECT EXISTS (SELECT 1 FROM entry WHERE idx = ? AND statement IS NULL)", entry).await
}

async fn ask(
    connection: &mut SqliteConnection,
    query: &'static str,
    entry: LeafIndex,
) -> Result<bool, StoreError> {
    sqlx::query_scalar(query).bind(signed(entry.get())).fetch_one(connection).await.map_err(store_error)
}

fn not_in_the_log(entry: LeafIndex) -> StoreError {
    StoreError::Refused(format!("entry {entry} is not in the log"))
}

pub(crate) async fn keep_report(store: &Sqlite, report: &Report) -> Result<bool, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let query = sqlx::query(
        "INSERT INTO report (guard, refused, idx, registered, at, statement) SELECT ?1, ?2, ?3, ?4, ?5,
           CASE WHEN EXISTS (SELECT 1 FROM entry WHERE idx = ?3 AND statement IS NOT NULL) THEN ?6 END
         WHERE (SELECT count(*) FROM report WHERE guard = ?1) < ?7
         ON CONFLICT (guard, refused) DO NOTHING",
    );
    let (index, registered) = &report.registered;
    let query = query.bind(&report.guard.0[..]).bind(&report.refused.as_bytes()[..]);
    let query = query.bind(signed(index.get())).bind(&registered.as_bytes()[..]).bind(signed(report.at));
    let query = query.bind(report.statement.as_ref().map(|bytes| &bytes[..]));
    let query = query.bind(signed(REPORTS_PER_GUARD as u64));
    query.execute(&mut *transaction).await.map_err(store_error)?;
    let query = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM report WHERE guard = ? AND refused = ?)");
    let query = query.bind(&report.guard.0[..]).bind(&report.refused.as_bytes()[..]);
    let kept = query.fetch_one(&mut *transaction).await.map_err(store_error)?;
    transaction::finish(store, transaction).await?;
    Ok(kept)
}

pub(crate) async fn reports(
    pool: &SqlitePool,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<KeptReport>, StoreError> {
    let query = sqlx::query(
        "SELECT no, guard, refused, idx, registered, at, statement FROM report
         WHERE no > ? ORDER BY no LIMIT ?",
    );
    let query = query.bind(after.map_or(-1, signed)).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(kept_report).collect()
}

pub(crate) async fn reports_about(
    pool: &SqlitePool,
    registered: &[LeafIndex],
) -> Result<Vec<KeptReport>, StoreError> {
    let select = "SELECT no, guard, refused, idx, registered, at, statement FROM report WHERE idx IN";
    let rows = select_in(pool, select, &reader::columns(registered)).await.map_err(store_error)?;
    let mut reports: Vec<KeptReport> = rows.iter().map(kept_report).collect::<Result<_, _>>()?;
    reports.sort_by_key(|kept| kept.number);
    reports.dedup_by_key(|kept| kept.number);
    Ok(reports)
}

fn kept_report(row: &SqliteRow) -> Result<KeptReport, StoreError> {
    let digest = |column| blob(row, column).and_then(sql::digest);
    let registered: (LeafIndex, EntryDigest) = (LeafIndex::new(number(row, 3)?), digest(4)?);
    Ok(KeptReport {
        number: number(row, 0)?,
        report: Report {
            guard: GuardKey(blob(row, 1)?.to_vec()),
            registered,
            refused: digest(2)?,
            statement: row.try_get::<Option<Vec<u8>>, _>(6).map_err(store_error)?.map(Bytes::from),
            at: number(row, 5)?,
        },
    })
}
