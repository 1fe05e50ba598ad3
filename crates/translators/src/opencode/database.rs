//! Rows of `opencode.db`, the SQLite database of OpenCode since 1.2, as the objects of the storage before.
//!
//! A message or part is the JSON of its column `data`, with its identifiers in columns. A session is columns only.

use serde_json::{Map, Value, json};

use crate::account::TranslationAccount;
use crate::lines;
use crate::native::Native;
use crate::source::SourceFile;

/// Columns with the names that their values had as members.
const RENAMED: [(&str, &str); 4] = [
    ("project_id", "projectID"),
    ("parent_id", "parentID"),
    ("session_id", "sessionID"),
    ("message_id", "messageID"),
];
/// Columns with times, and their names in the member `time`.
const TIMES: [(&str, &str); 4] = [
    ("time_created", "created"),
    ("time_updated", "updated"),
    ("time_compacting", "compacting"),
    ("time_archived", "archived"),
];

/// Makes the object of a row. Columns without a counterpart stay under their names, and times of `data` count before
/// those of columns.
pub(super) fn object(row: &SourceFile, account: &mut TranslationAccount) -> Result<Value, String> {
    let columns = lines::document(&row.path, &row.bytes, account)?;
    let mut columns = Native::of(columns).map_err(|_| "the row is not an object".to_owned())?;
    let mut object = match columns.take_text("data") {
        Some(data) => match lines::document(&row.path, data.as_bytes(), account)? {
            Value::Object(members) => members,
            _ => return Err("the column data is not a JSON object".to_owned()),
        },
        None => Map::new(),
    };
    let times = TIMES.iter().filter_map(|(column, name)| Some(((*name).to_owned(), columns.take(column)?)));
    let times: Map<String, Value> = times.collect();
    if let Value::Object(time) = object.entry("time").or_insert_with(|| json!({})) {
        for (name, value) in times {
            time.entry(name).or_insert(value);
        }
    }
    for (column, value) in columns.rest() {
        let name =
            RENAMED.iter().find(|(renamed, _)| *renamed == column).map_or(column.as_str(), |(_, name)| name);
        object.insert(name.to_owned(), value);
    }
    Ok(Value::Object(object))
}
