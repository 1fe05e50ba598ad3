//! The table `tile`, to which each batch appends its hashes as a part of a tile.

use bytes::Bytes;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePool;
use store::{StoreError, TILE_PARTS, TileAddress, TileWrite};

use crate::sql::{signed, store_error, to_bytes};

/// Appends the hashes that a batch adds, of which `first` is the position of the first. A tile that many batches have
/// filled becomes one row.
pub(crate) async fn extend(
    connection: &mut SqliteConnection,
    tile: &TileWrite,
    first: u16,
    added: &[u8],
) -> Result<(), sqlx::Error> {
    let is_scattered =
        tile.full().is_some() && parts(connection, tile.address).await? >= signed(TILE_PARTS as u64);
    match tile.full().filter(|_| is_scattered) {
        Some(full) => replace_parts(connection, tile.address, full).await,
        None => insert_part(connection, tile.address, first, added).await,
    }
}

async fn parts(connection: &mut SqliteConnection, address: TileAddress) -> Result<i64, sqlx::Error> {
    let count = sqlx::query_scalar("SELECT count(*) FROM tile WHERE level = ? AND number = ?");
    count.bind(address.level).bind(signed(address.number)).fetch_one(connection).await
}

async fn insert_part(
    connection: &mut SqliteConnection,
    address: TileAddress,
    first: u16,
    added: &[u8],
) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO tile (level, number, first, data) VALUES (?, ?, ?, ?)");
    let insert = insert.bind(address.level).bind(signed(address.number)).bind(first).bind(added);
    insert.execute(connection).await.map(drop)
}

/// Writes the whole tile as its first part, and deletes the others.
async fn replace_parts(
    connection: &mut SqliteConnection,
    address: TileAddress,
    full: &[u8],
) -> Result<(), sqlx::Error> {
    let whole = sqlx::query(
        "INSERT INTO tile (level, number, first, data) VALUES (?, ?, 0, ?)
         ON CONFLICT (level, number, first) DO UPDATE SET data = excluded.data",
    );
    let whole = whole.bind(address.level).bind(signed(address.number)).bind(full);
    whole.execute(&mut *connection).await?;
    let delete = sqlx::query("DELETE FROM tile WHERE level = ? AND number = ? AND first > 0");
    let delete = delete.bind(address.level).bind(signed(address.number));
    delete.execute(connection).await.map(drop)
}

pub(crate) async fn tiles(
    pool: &SqlitePool,
    addresses: &[TileAddress],
) -> Result<Vec<Option<Bytes>>, StoreError> {
    let mut tiles = Vec::with_capacity(addresses.len());
    for address in addresses {
        let query = sqlx::query_scalar::<_, Vec<u8>>(
            "SELECT data FROM tile WHERE level = ? AND number = ? ORDER BY first",
        );
        let parts = query.bind(address.level).bind(signed(address.number)).fetch_all(pool);
        tiles.push(joined(parts.await.map_err(store_error)?));
    }
    Ok(tiles)
}

/// Returns a tile from its parts; `None` if it has none.
fn joined(parts: Vec<Vec<u8>>) -> Option<Bytes> {
    let mut parts = parts.into_iter();
    let mut tile = parts.next()?;
    parts.for_each(|part| tile.extend_from_slice(&part));
    Some(to_bytes(tile))
}
