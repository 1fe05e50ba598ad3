//! [`Script`]: statements that the connection's thread executes without an answer in between.
//!
//! sqlx runs each connection in a thread of its own. A request to it wakes that thread and then the caller's, which takes
//! longer than most of our statements do. So statements over few rows share a request. The texts of small requests recur,
//! and their prepared statements are cached. A statement over many rows is a request of its own, whose text recurs as well.

use futures::StreamExt;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Either, Encode, Executor, Sqlite, SqliteConnection, Type};

use crate::limits::{CACHED_TOGETHER, ROWS, TOGETHER};

/// Statements with their values, in the order of their execution. Placeholders are written `?`, without numbers.
#[derive(Debug, Default)]
pub struct Script {
    requests: Vec<Request>,
}

/// Statements that are sent to the thread together.
#[derive(Debug, Default)]
struct Request {
    text: String,
    /// Number of the statements.
    statements: usize,
    /// Number of the rows in their texts; one for a statement with other values.
    rows: usize,
    values: Values,
    /// `true` if no other statement may be added.
    is_full: bool,
}

/// The values of the placeholders, in their order.
#[derive(Debug, Default)]
pub struct Values {
    arguments: SqliteArguments,
    refused: Option<BoxDynError>,
}

impl Script {
    /// Adds a statement without values.
    pub fn add(&mut self, statement: &str) {
        self.request(1).add(statement);
    }

    /// Adds a statement with values.
    pub fn add_with(&mut self, statement: &str, bind: impl FnOnce(&mut Values)) {
        let request = self.request(1);
        request.add(statement);
        request.rows += 1;
        bind(&mut request.values);
    }

    /// Returns the number of statements that were added.
    pub fn statements(&self) -> usize {
        self.requests.iter().map(|request| request.statements).sum()
    }

    /// Adds `before row, row, … after` for any number of rows: as many statements as [`portions`] of the rows. `row` is
    /// the text of one row, with its placeholders.
    pub fn add_rows<T>(
        &mut self,
        before: &str,
        row: &str,
        after: &str,
        rows: &[T],
        bind: impl Fn(&mut Values, &T),
    ) {
        for portion in portions(rows) {
            let request = self.request(portion.len());
            request.add(&format!("{before}{}{after}", vec![row; portion.len()].join(",")));
            request.rows += portion.len();
            portion.iter().for_each(|row| bind(&mut request.values, row));
        }
    }

    /// The request that takes a statement over this many rows.
    fn request(&mut self, rows: usize) -> &mut Request {
        let is_full = rows > TOGETHER;
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
    pub async fn run(&mut self, connection: &mut SqliteConnection) -> Result<Vec<SqliteRow>, ScriptFailure> {
        let mut returned = Vec::new();
        let mut done = 0;
        let mut requests = std::mem::take(&mut self.requests).into_iter();
        while let Some(request) = requests.next() {
            let statements = request.statements;
            let is_last = requests.len() == 0;
            let run = request.run(connection, &mut returned).await;
            run.map_err(|failure| ScriptFailure {
                may_have_ended: failure.may_have_ended && is_last,
                statement: failure.statement + done,
                ..failure
            })?;
            done += statements;
        }
        Ok(returned)
    }
}

/// Failure of a script.
#[derive(Debug)]
pub struct ScriptFailure {
    /// The error.
    pub error: sqlx::Error,
    /// Number of the first statement that was not executed to its end, from zero.
    pub statement: usize,
    /// `true` if the last statement was executed or may have been. Otherwise an earlier one failed.
    pub may_have_ended: bool,
}

impl ScriptFailure {
    /// A failure before the first statement.
    pub fn before(error: sqlx::Error) -> Self {
        Self { error, statement: 0, may_have_ended: false }
    }
}

impl Request {
    /// Executes the statements, and adds the rows that they return.
    async fn run(
        self,
        connection: &mut SqliteConnection,
        returned: &mut Vec<SqliteRow>,
    ) -> Result<(), ScriptFailure> {
        let arguments = self.values.into_arguments().map_err(ScriptFailure::before)?;
        let is_cached = self.is_full || self.rows <= CACHED_TOGETHER;
        let query = sqlx::query_with(AssertSqlSafe(self.text), arguments).persistent(is_cached);
        let mut answers = connection.fetch_many(query);
        let mut statement = 0;
        let failed = |error, statement, may_have_ended| ScriptFailure { error, statement, may_have_ended };
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Either::Right(row)) => returned.push(row),
                Ok(Either::Left(_)) => statement += 1,
                Err(error) => return Err(failed(error, statement, statement + 1 >= self.statements)),
            }
        }
        match statement == self.statements {
            true => Ok(()),
            false => Err(failed(sqlx::Error::WorkerCrashed, statement, true)),
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
    pub fn bind<'t, V: Encode<'t, Sqlite> + Type<Sqlite>>(&mut self, value: V) -> &mut Self {
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

/// Splits rows into portions of powers of two, at most 64 rows each, so that few different statements are prepared.
pub fn portions<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = rest.len().min(ROWS).checked_ilog2().map(|power| 1 << power)?;
        let (portion, left) = rest.split_at(size);
        rest = left;
        Some(portion)
    })
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
    fn rows_are_cut_into_powers_of_two() {
        let sizes = |rows: usize| portions(&vec![0; rows]).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(0), Vec::<usize>::new());
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(50), [32, 16, 2]);
        assert_eq!(sizes(200), [64, 64, 64, 8]);
    }

    #[test]
    fn few_rows_share_a_request_and_many_have_their_own() {
        let mut script = Script::default();
        script.add("BEGIN");
        insert(&mut script, &[1, 2, 3]);
        insert(&mut script, &vec![0; 2 * TOGETHER + 1]);
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
        insert(&mut script, &[0; 2 * TOGETHER]);
        assert!(!run(&mut script, &mut connection).await.unwrap_err().may_have_ended);
        insert(&mut script, &[4]);
        insert(&mut script, &[4]);
        assert!(run(&mut script, &mut connection).await.unwrap_err().may_have_ended, "the last one failed");
        insert(&mut script, &[5]);
        assert_eq!(run(&mut script, &mut connection).await.unwrap(), [5]);
        let rows = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM t").fetch_one(&mut connection);
        assert_eq!(rows.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_failure_has_the_number_of_its_statement() {
        let mut connection = connection().await;
        let mut script = Script::default();
        insert(&mut script, &[0]);
        let many: Vec<i64> = (1..=64).collect();
        insert(&mut script, &many);
        let row = |script: &mut Script, n: i64| {
            script.add_with("INSERT INTO t VALUES (?, 'one')", |values| _ = values.bind(n));
        };
        row(&mut script, 65);
        assert_eq!(script.statements(), 3);
        row(&mut script, 65);
        row(&mut script, 66);
        let failure = run(&mut script, &mut connection).await.unwrap_err();
        assert_eq!((failure.statement, failure.may_have_ended), (3, false), "{}", failure.error);
        assert_eq!(script.statements(), 0);
        script.add("nonsense");
        let failure = run(&mut script, &mut connection).await.unwrap_err();
        assert_eq!((failure.statement, failure.may_have_ended), (0, true), "{}", failure.error);
    }
}
