//! The tables with sessions, and how their rows become files of a source.

use serde_json::{Map, Value};
use sqlx::sqlite::{SqliteRow, SqliteValueRef};
use sqlx::{Column, Row, TypeInfo, ValueRef};
use translators::SourceFile;

/// A query for rows with sessions.
pub(crate) struct SessionTable {
    pub name: &'static str,
    columns: &'static str,
    /// The SQL condition of the rows.
    condition: &'static str,
    /// The column that they are ordered by.
    order: &'static str,
}

/// The tables of OpenCode.
pub(crate) const OPENCODE: [SessionTable; 3] = [
    SessionTable { name: "session", columns: "*", condition: "TRUE", order: "id" },
    SessionTable { name: "message", columns: "*", condition: "TRUE", order: "id" },
    SessionTable { name: "part", columns: "*", condition: "TRUE", order: "id" },
];

/// The table of Cursor. The characters after the colon come before the semicolon.
pub(crate) const CURSOR: [SessionTable; 1] = [SessionTable {
    name: "cursorDiskKV",
    columns: "key, value",
    condition: "value IS NOT NULL \
        AND (key >= 'bubbleId:' AND key < 'bubbleId;' OR key >= 'composerData:' AND key < 'composerData;')",
    order: "key",
}];

impl SessionTable {
    /// Returns the query for the rows.
    pub(crate) fn rows(&self) -> String {
        let Self { name, columns, condition, order } = self;
        format!("SELECT {columns} FROM {name} WHERE {condition} ORDER BY {order}")
    }

    /// Returns the query for the size of the rows in bytes, over all of these columns. SQLite knows the size of a stored cell
    /// without reading it.
    pub(crate) fn size(&self, columns: &[String]) -> String {
        let size = |column: &String| format!("total(octet_length(\"{}\"))", column.replace('"', "\"\""));
        let sizes: Vec<String> = columns.iter().map(size).collect();
        format!("SELECT {} FROM {} WHERE {}", sizes.join(" + "), self.name, self.condition)
    }

    /// Makes the file of a row, as [`SessionSource::rows`](translators::SessionSource::rows) describes it.
    pub(crate) fn file(&self, row: &SqliteRow) -> Result<SourceFile, sqlx::Error> {
        if self.name == CURSOR[0].name {
            return Ok(SourceFile {
                path: text(row.try_get_raw("key")?)?,
                bytes: bytes(row.try_get_raw("value")?)?,
            });
        }
        let mut columns = Map::new();
        for column in row.columns() {
            columns.insert(column.name().to_owned(), value(row.try_get_raw(column.ordinal())?)?);
        }
        let id = columns.get("id").and_then(Value::as_str).unwrap_or_default();
        let path = format!("{}/{id}", self.name);
        Ok(SourceFile { path, bytes: Value::Object(columns).to_string().into_bytes() })
    }
}

/// Converts a cell by the type of its value, which SQLite does not tie to the column.
fn value(cell: SqliteValueRef<'_>) -> Result<Value, sqlx::Error> {
    if cell.is_null() {
        return Ok(Value::Null);
    }
    let kind = cell.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "INTEGER" | "BOOLEAN" => decode::<i64>(cell)?.into(),
        "REAL" => decode::<f64>(cell)?.into(),
        _ => text(cell)?.into(),
    })
}

/// Converts a text or a blob. Bytes that are not UTF-8 are replaced.
fn text(cell: SqliteValueRef<'_>) -> Result<String, sqlx::Error> {
    Ok(String::from_utf8_lossy(&bytes(cell)?).into_owned())
}

fn bytes(cell: SqliteValueRef<'_>) -> Result<Vec<u8>, sqlx::Error> {
    decode::<Vec<u8>>(cell)
}

fn decode<'r, T: sqlx::Decode<'r, sqlx::Sqlite>>(cell: SqliteValueRef<'r>) -> Result<T, sqlx::Error> {
    T::decode(cell).map_err(sqlx::Error::Decode)
}
