//! [`Script`]: statements that the connection's thread executes without an answer in between.
//!
//! sqlx runs each connection in a thread of its own. A request to it wakes that thread and then the caller's, which takes
//! longer than most of our statements do. So statements over few rows share a request. The texts of small requests recur,
//! and their prepared statements are cached. A statement over many rows is a request of its own, whose text recurs as well.

use futures::StreamExt;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Either, Encode, Executor, Sqlite, SqliteConnection, Type};

use crate::{limits, sql};

/// Statements with their values, in the order of their execution.
#[derive(Debug, Default)]
pub(crate) struct Script {
    requests: Vec<Request>,
}

/// Statements that are sent to the thread together.
#[derive(Debug, Default)]
struct Request {
    text: String,
    /// Number of the statements.
    statements: usize,
    /// Number of the rows in their texts.
    rows: usize,
    values: Values,
    /// `true` if no other statement may be added.
    is_full: bool,
}

/// The values of the placeholders, in their order.
#[derive(Debug, Default)]
pub(crate) struct Values {
    arguments: SqliteArguments,
    refused: Option<BoxDynError>,
}

impl Script {
    /// Adds a statement without values.
    pub(crate) fn add(&mut self, statement: &str) {
        self.request(1).add(statement);
    }

    /// Adds `before VALUES row, row, … after` for any number of rows. `row` is the text of one row, with its placeholders.
    pub(crate) fn add_rows<T>(
        &mut self,
        before: &str,
        row: &str,
        after: &str,
        rows: &[T],
        bind: impl Fn(&mut Values, &T),
    ) {
        for portion in sql::portions(rows) {
            let request = self.request(portion.len());
            request.add(&format!("{before}{}{after}", vec![row; portion.len()].join(",")));
            request.rows += portion.len();
            portion.iter().for_each(|row| bind(&mut request.values, row));
        }
    }

    /// The request that takes a statement over this many rows.
    fn request(&mut self, rows: usize) -> &mut Request {
        let is_full = rows > limits::TOGETHER;
        if is_full || self.requests.last().is_none_or(|last| last.is_full) {
            self.requests.push(Request { is_full, ..Request::default() });
        }
        let last = self.requests.len() - 1;
        &mut self.requests[last]
    }

    /// Executes the statements and empties the script. Returns the rows that they return, in order.
    ///
    /// # Errors
    /// [`ScriptFailure`] if a statement fails; those that follow are not executed.
    pub(crate) async fn run(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<SqliteRow>, ScriptFailure> {
        let mut returned = Vec::new();
        let mut requests = std::mem::take(&mut self.requests).into_iter();
        while let Some(request) = requests.next() {
            let is_last = requests.len() == 0;
            let run = request.run(connection, &mut returned).await;
            run.map_err(|failure| ScriptFailure {
                may_have_ended: failure.may_have_ended && is_last,
                ..failure
            })?;
        }
        Ok(returned)
    }
}

/// Failure of a script.
#[derive(Debug)]
pub(crate) struct ScriptFailure {
    pub(crate) error: sqlx::Error,
    /// `true` if the last statement was executed or may have been. Otherwise an earlier one failed.
    pub(crate) may_have_ended: bool,
}

impl Request {
    /// Executes the statements, and adds the rows that they return.
    async fn run(
        self,
        connection: &mut SqliteConnection,
        returned: &mut Vec<SqliteRow>,
    ) -> Result<(), ScriptFailure> {
        let arguments = self.values.into_arguments();
        let arguments = arguments.map_err(|error| ScriptFailure { error, may_have_ended: false })?;
        let is_cached = self.is_full || self.rows <= limits::CACHED_TOGETHER;
        let query = sqlx::query_with(AssertSqlSafe(self.text), arguments).persistent(is_cached);
        let mut answers = connection.fetch_many(query);
        let mut left = self.statements;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Either::Right(row)) => returned.push(row),
                Ok(Either::Left(_)) => left -= 1,
                Err(error) => return Err(ScriptFailure { error, may_have_ended: left <= 1 }),
            }
        }
        match left {
            0 => Ok(()),
            _ => Err(ScriptFailure { error: sqlx::Error::WorkerCrashed, may_have_ended: true }),
        }
    }

    fn add(&mut self, statement: &str) {
        self.text.push_str(statement);
        self.text.push_str(";\n");
        self.statements += 1;
    }
}

impl Values {
    /// Adds the value of the next placeholder.
    pub(crate) fn bind<'t, V: Encode<'t, Sqlite> + Type<Sqlite>>(&mut self, value: V) -> &mut Self {
        if let Err(error) = sqlx::Arguments::add(&mut self.arguments, value) {
            self.refused.get_or_insert(error);
        }
        self
    }

    fn into_arguments(self) -> Result<SqliteArguments, sqlx::Error> {
        match self.refused {
            None => Ok(self.arguments),
            Some(error) => Err(sqlx::Error::Encode(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions, Row};

    use super::*;

    async fn connection() -> SqliteConnection {
        let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        let table = "CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT NOT NULL)";
        sqlx::query(table).execute(&mut connection).await.unwrap();
        connection
    }

    fn insert(script: &mut Script, rows: &[i64]) {
        script.add_rows("INSERT INTO t VALUES ", "(?, 'row ' || ?)", " RETURNING n", rows, |values, row| {
            values.bind(*row).bind(*row);
        });
    }

    async fn run(script: &mut Script, connection: &mut SqliteConnection) -> Result<Vec<i64>, ScriptFailure> {
        Ok(script.run(connection).await?.iter().map(|row| row.get(0)).collect())
    }

    #[tokio::test]
    async fn a_script_runs_in_order_and_again_with_other_values() {
        let mut connection = connection().await;
        for begin in [0, 1_000] {
            let mut script = Script::default();
            let all: Vec<i64> = (begin..begin + 110).collect();
            script.add("BEGIN IMMEDIATE");
            insert(&mut script, &all[..3]);
            script.add("DELETE FROM t WHERE n % 1000 = 1");
            insert(&mut script, &all[3..]);
            script.add("COMMIT");
            assert_eq!(run(&mut script, &mut connection).await.unwrap(), all);
            assert_eq!(run(&mut script, &mut connection).await.unwrap(), [0; 0]);
        }
        let left = sqlx::query("SELECT count(*), max(text) FROM t").fetch_one(&mut connection).await.unwrap();
        assert_eq!((left.get::<i64, _>(0), left.get::<&str, _>(1)), (218, "row 99"));
    }

    #[test]
    fn few_rows_share_a_request_and_many_have_their_own() {
        let mut script = Script::default();
        script.add("BEGIN");
        insert(&mut script, &[1, 2, 3]);
        insert(&mut script, &vec![0; 2 * limits::TOGETHER + 1]);
        script.add("COMMIT");
        let texts: Vec<usize> =
            script.requests.iter().map(|request| request.text.matches(';').count()).collect();
        assert_eq!(texts, [3, 1, 2]);
    }

    #[tokio::test]
    async fn after_an_error_nothing_that_follows_is_executed() {
        let mut connection = connection().await;
        let mut script = Script::default();
        insert(&mut script, &[1, 1]);
        insert(&mut script, &[2]);
        insert(&mut script, &[0; 2 * limits::TOGETHER]);
        assert!(!run(&mut script, &mut connection).await.unwrap_err().may_have_ended);
        insert(&mut script, &[4]);
        insert(&mut script, &[4]);
        assert!(run(&mut script, &mut connection).await.unwrap_err().may_have_ended, "the last one failed");
        insert(&mut script, &[5]);
        assert_eq!(run(&mut script, &mut connection).await.unwrap(), [5]);
        let rows = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM t").fetch_one(&mut connection);
        assert_eq!(rows.await.unwrap(), 2);
    }
}
