//! Databases as OpenCode and Cursor write them, read while they are open for writing.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use session_databases::{DatabaseError, is_database, read};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Connection, SqliteConnection};
use translators::limits::SOURCE_BYTES;
use translators::{Format, Settings, Translation, translate};

/// A database with these statements executed, and the connection that wrote them.
async fn database(statements: &str) -> (tempfile::TempDir, SqliteConnection) {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(folder.path().join("db")).create_if_missing(true);
    let options = options.journal_mode(SqliteJournalMode::Wal);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
    (folder, connection)
}

const OPENCODE: &str = r#"
CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text, `slug` text NOT NULL,
    `directory` text NOT NULL, `title` text NOT NULL, `version` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
INSERT INTO session VALUES ('ses_1', 'p', NULL, 'brave-fox', '/srv/shop', 'Fix it', '1.2.0', 1772359200000, 1772359260000);
INSERT INTO message VALUES ('msg_1', 'ses_1', 1772359200000, 1772359200000, '{"role":"user","time":{"created":1772359200000}}');
INSERT INTO message VALUES ('msg_2', 'ses_1', 1772359201000, 1772359202000, '{"role":"assistant","time":{"created":1772359201000},"modelID":"m","providerID":"v","tokens":{"input":5,"output":7,"reasoning":0,"cache":{"read":0,"write":0}}}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, '{"type":"text","text":"Write a."}');
INSERT INTO part VALUES ('prt_2', 'msg_2', 'ses_1', 2, 2, '{"type":"tool","tool":"write","callID":"c1","state":{"status":"completed","input":{"filePath":"/srv/shop/a","content":"1\n2\n"},"output":""}}');
INSERT INTO part VALUES ('prt_3', 'msg_9', 'ses_1', 2, 2, 'no JSON');
"#;

fn translated(folder: &tempfile::TempDir) -> Translation {
    translate(&read(&folder.path().join("db")).unwrap(), &Settings::default()).unwrap()
}

#[tokio::test]
async fn sessions_of_opencode_are_read_while_it_writes() {
    let (folder, mut writer) = database(OPENCODE).await;
    let open = writer.begin().await.unwrap();
    assert!(is_database(&folder.path().join("db")));
    let translation = translated(&folder);
    assert_eq!((translation.format, translation.account.total), (Format::OpenCode, 6));
    assert_eq!(translation.account.accounted(), 6);
    assert_eq!(translation.account.broken[0].file, "part/prt_3");
    let record = translation.records[0].0.value();
    let session = &record["session"];
    assert_eq!(
        (&session["session-id"], &session["session-start"]),
        (&json!("ses_1"), &json!("2026-03-01T10:00:00.000Z"))
    );
    assert_eq!(
        (&session["environment"]["working-dir"], &session["native"]["slug"]),
        (&json!("/srv/shop"), &json!("brave-fox"))
    );
    assert_eq!(session["entries"][0]["content"], "Write a.");
    assert_eq!(session["entries"][1]["token-usage"]["total"], 12);
    assert_eq!(record["file-attribution"]["files"][0]["path"], "a");
    open.rollback().await.unwrap();
    assert_eq!(translated(&folder).records[0].0.bytes(), translation.records[0].0.bytes());
}

#[tokio::test]
async fn chats_of_cursors_composer_are_read() {
    let chat = json!({
        "composerId": "c", "createdAt": 1_772_359_200_000_u64, "name": "A chat",
        "fullConversationHeadersOnly": [{ "bubbleId": "b2", "type": 1 }, { "bubbleId": "b1", "type": 2 }],
    });
    let call = json!({ "toolCallId": "t", "name": "read_file", "rawArgs": "{\"path\":\"a\"}", "result": "1", "status": "completed" });
    let answer = json!({ "bubbleId": "b1", "type": 2, "text": "", "thinking": { "text": "Hm." }, "toolFormerData": call });
    let question =
        json!({ "bubbleId": "b2", "type": 1, "text": "Read a.", "createdAt": "2026-03-01T10:00:00.000Z" });
    let rows = [
        ("composerData:c", chat.to_string()),
        ("composerData:empty", "{}".to_owned()),
        ("bubbleId:c:b1", answer.to_string()),
        ("bubbleId:c:b2", question.to_string()),
        ("bubbleId:gone:b3", question.to_string()),
        ("checkpointId:c:x", "not read".to_owned()),
    ];
    let (folder, mut writer) =
        database("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)").await;
    for (key, value) in &rows {
        let insert = sqlx::query("INSERT INTO cursorDiskKV VALUES (?, ?)").bind(key).bind(value.as_bytes());
        insert.execute(&mut writer).await.unwrap();
    }
    let translation = translated(&folder);
    assert_eq!((translation.format, translation.account.total), (Format::CursorComposer, 5));
    assert_eq!(translation.account.accounted(), 5);
    assert_eq!(translation.records.len(), 1, "a chat without messages is not a session");
    let session = &translation.records[0].0.value()["session"];
    let entries = session["entries"].as_array().unwrap();
    assert_eq!((&entries[0]["type"], &entries[0]["content"]), (&json!("user"), &json!("Read a.")));
    let kinds: Vec<_> =
        entries[1]["children"].as_array().unwrap().iter().map(|child| &child["type"]).collect();
    assert_eq!(kinds, ["reasoning", "tool-call", "tool-result"]);
    assert_eq!(entries[1]["children"][1]["input"], json!({ "path": "a" }));
    assert_eq!(session["native"]["name"], "A chat");
}

#[tokio::test]
async fn every_column_counts_for_the_size_also_a_computed_one() {
    let (folder, mut writer) = database(OPENCODE).await;
    let bytes = SOURCE_BYTES + 1;
    let add = format!("ALTER TABLE session ADD COLUMN \"a \"\"b\"\"\" blob AS (zeroblob({bytes}))");
    sqlx::raw_sql(sqlx::AssertSqlSafe(add)).execute(&mut writer).await.unwrap();
    let refused = read(&folder.path().join("db"));
    assert!(matches!(refused, Err(DatabaseError::TooLarge { .. })), "{:?}", refused.err());
}

#[tokio::test]
async fn other_databases_and_tables_that_compute_are_refused() {
    let (folder, _writer) = database("CREATE TABLE session (id text)").await;
    assert!(matches!(read(&folder.path().join("db")), Err(DatabaseError::UnknownTables)));
    let endless = "CREATE VIEW cursorDiskKV AS WITH RECURSIVE r(key) AS (SELECT 'bubbleId:' UNION ALL SELECT key FROM r) \
        SELECT key, key AS value FROM r";
    let (folder, _writer) = database(endless).await;
    assert!(matches!(read(&folder.path().join("db")), Err(DatabaseError::UnknownTables)));
    std::fs::write(folder.path().join("text"), "SQLite").unwrap();
    assert!(!is_database(&folder.path().join("text")));
    assert!(!folder.path().join("new").exists() && read(&folder.path().join("new")).is_err());
    assert!(!folder.path().join("new").exists(), "a file that is missing is not made");
}
