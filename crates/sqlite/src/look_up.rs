//! Look-ups of many keys.

use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Encode, Sqlite, SqliteExecutor, Type};

use crate::limits::KEYS;

/// Runs `select`, which ends with `IN`, over any number of keys.
///
/// # Errors
/// The error of SQLite.
pub async fn select_in<'q, K>(
    executor: impl SqliteExecutor<'q> + Copy,
    select: &str,
    keys: &[K],
) -> Result<Vec<SqliteRow>, sqlx::Error>
where
    K: for<'k> Encode<'k, Sqlite> + Type<Sqlite> + Copy + Send,
{
    let mut found = Vec::new();
    for chunk in keys.chunks(KEYS) {
        // Few statements are cached: the remaining placeholders repeat the last key.
        let places = chunk.len().next_power_of_two();
        let text = format!("{select} ({})", vec!["?"; places].join(","));
        let query = (0..places).fold(sqlx::query(AssertSqlSafe(text)), |query, place| {
            query.bind(chunk[place.min(chunk.len() - 1)])
        });
        found.extend(query.fetch_all(executor).await?);
    }
    Ok(found)
}
