//! [`PinDatabase`]: a pin in a separate PostgreSQL, for a log that is led by several hosts.
//!
//! One row for each log, changed by compare-and-swap: a claim needs a newer epoch than the row's, a raise needs
//! the row's own. A late UPDATE of a process that was paused or cut off finds another epoch and changes nothing.
//!
//! The database must not be the log's own, nor be restored together with it: both would then return to the same
//! old state.

use async_trait::async_trait;
use merkle::{RootHash, TreeSize};
use sqlx::PgPool;
use sqlx::postgres::PgQueryResult;
use store::{Pin, PinError, PinStore, StoreError};
use tokio::time::timeout;

use crate::durability;
use crate::error::{store_error, too_late};
use crate::limits;
use crate::session::{self, Server};

/// Creates the table if needed, as the database may be empty.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS pin (
    origin text PRIMARY KEY,
    size bigint NOT NULL CHECK (size >= 0),
    root bytea NOT NULL CHECK (octet_length(root) = 32),
    epoch bigint NOT NULL CHECK (epoch >= 0)
)";

const READ: &str = "SELECT size, root, epoch FROM pin WHERE origin = $1";

const CLAIM: &str = "INSERT INTO pin (origin, size, root, epoch) VALUES ($1, $2, $3, $4)
    ON CONFLICT (origin) DO UPDATE SET size = excluded.size, root = excluded.root, epoch = excluded.epoch
    WHERE pin.epoch < excluded.epoch
      AND (pin.size < excluded.size OR pin.size = excluded.size AND pin.root = excluded.root)";

const RAISE: &str = "UPDATE pin SET size = $2, root = $3
    WHERE origin = $1 AND epoch = $4 AND (size < $2 OR size = $2 AND root = $3)";

/// Maximum number of connections: one operation runs at a time, and one that timed out may still run.
const CONNECTIONS: u32 = 2;

/// Pin of a log in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PinDatabase {
    server: Server,
    pool: PgPool,
    origin: String,
    place: String,
}

impl PinDatabase {
    /// Names the pin of a log in the database at a `postgres://` URL. Does not connect.
    ///
    /// # Errors
    ///
    /// If the URL is invalid.
    pub fn from_url(url: &str, origin: &str) -> Result<Self, StoreError> {
        let server = Server::from_url(url)?;
        let pool = server.pool(&session::UPKEEP, CONNECTIONS);
        Ok(Self { place: server.0.place(), server, pool, origin: origin.to_owned() })
    }

    async fn found(&self) -> Result<Option<Pin>, PinError> {
        let row =
            sqlx::query_as::<_, (i64, Vec<u8>, i64)>(READ).bind(&self.origin).fetch_optional(&self.pool);
        let Some((size, root, epoch)) = self.answered(row).await? else { return Ok(None) };
        let unreadable = |why: &str| PinError::Unreadable { place: self.place.clone(), why: why.to_owned() };
        let root: [u8; 32] = root.try_into().map_err(|_| unreadable("its root is not 32 bytes long"))?;
        let number = |number: i64| u64::try_from(number).map_err(|_| unreadable("a number is negative"));
        Ok(Some(Pin {
            origin: self.origin.clone(),
            size: TreeSize::new(number(size)?),
            root: RootHash::from_bytes(root),
            epoch: number(epoch)?,
        }))
    }

    async fn changed(&self, statement: &'static str, pin: &Pin) -> Result<bool, PinError> {
        if pin.origin != self.origin {
            return Err(PinError::OtherLog(self.origin.clone()));
        }
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let done = sqlx::query(statement)
            .bind(&pin.origin)
            .bind(number(pin.size.get()))
            .bind(pin.root.as_bytes().to_vec())
            .bind(number(pin.epoch))
            .execute(&self.pool);
        self.answered(done).await.map(|done: PgQueryResult| done.rows_affected() == 1)
    }

    /// Finds the reason why a change was refused.
    async fn refusal(&self, pin: &Pin, claims: bool) -> PinError {
        match self.found().await {
            Err(error) => error,
            Ok(None) => PinError::Superseded(0),
            Ok(Some(found)) if found.epoch != pin.epoch || claims => match found.allows(pin) {
                Err(error) if found.epoch < pin.epoch => error,
                _ => PinError::Superseded(found.epoch),
            },
            Ok(Some(found)) => match found.allows(pin) {
                Err(error) => error,
                Ok(()) => self.unavailable("it changed meanwhile"),
            },
        }
    }

    async fn answered<T>(&self, work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, PinError> {
        let answer = timeout(limits::ANSWER, work).await;
        let answer = answer.map_err(|_| too_late("the pin")).and_then(|done| done.map_err(store_error));
        answer.map_err(|error| self.unavailable(error))
    }

    fn unavailable(&self, why: impl ToString) -> PinError {
        PinError::Unavailable { place: self.place.clone(), why: why.to_string() }
    }
}

#[async_trait]
impl PinStore for PinDatabase {
    /// Reads the pin, after creating the table if there is none.
    async fn read(&self) -> Result<Option<Pin>, PinError> {
        self.answered(sqlx::query(TABLE).execute(&self.pool)).await?;
        self.found().await
    }

    /// Claims the pin, and refuses a server that does not keep acknowledged commits (`durability::check`).
    async fn claim(&self, pin: &Pin) -> Result<(), PinError> {
        durability::check(&self.server).await.map_err(|error| self.unavailable(error))?;
        self.answered(sqlx::query(TABLE).execute(&self.pool)).await?;
        match self.changed(CLAIM, pin).await? {
            true => Ok(()),
            false => Err(self.refusal(pin, true).await),
        }
    }

    async fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        match self.changed(RAISE, pin).await? {
            true => Ok(()),
            false => Err(self.refusal(pin, false).await),
        }
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}
