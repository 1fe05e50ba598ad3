//! The table `tile`, to which each batch appends its hashes as a part of a tile.

use bytes::Bytes;
use sqlite::Script;
use sqlx::sqlite::SqlitePool;
use store::{StoreError, TILE_PARTS, TileAddress, TileWrite};

use crate::sql::{signed, store_error, to_bytes};

/// Appends the hashes that a batch adds, of which `first` is the position of the first. A tile that many batches have
/// filled becomes one row.
pub(crate) fn extend(script: &mut Script, tile: &TileWrite, first: u16, added: &[u8]) {
    match tile.full() {
        None => insert_part(script, "", tile.address, first, added),
        Some(full) => {
            replace_first_part(script, tile.address, full);
            insert_part(script, UNLESS_CHANGED, tile.address, first, added);
            delete_other_parts(script, tile.address);
        }
    }
}

/// Condition that the statement before has changed no row.
const UNLESS_CHANGED: &str = " WHERE changes() = 0";

fn insert_part(script: &mut Script, condition: &str, address: TileAddress, first: u16, added: &[u8]) {
    let insert = format!("INSERT INTO tile (level, number, first, data) SELECT ?, ?, ?, ?{condition}");
    script.add_with(&insert, |values| {
        values.bind(address.level).bind(signed(address.number)).bind(first).bind(added);
    });
}

/// Writes the whole tile as its first part, if it is in many.
fn replace_first_part(script: &mut Script, address: TileAddress, full: &[u8]) {
    let whole = format!(
        "INSERT INTO tile (level, number, first, data)
         SELECT ?, ?, 0, ? WHERE (SELECT count(*) FROM tile WHERE level = ? AND number = ?) >= {TILE_PARTS}
         ON CONFLICT (level, number, first) DO UPDATE SET data = excluded.data"
    );
    script.add_with(&whole, |values| {
        values.bind(address.level).bind(signed(address.number)).bind(full);
        values.bind(address.level).bind(signed(address.number));
    });
}

/// Deletes the parts that the first one contains, unless the statement before has inserted another part.
fn delete_other_parts(script: &mut Script, address: TileAddress) {
    let delete = "DELETE FROM tile WHERE level = ? AND number = ? AND first > 0 AND changes() = 0";
    script.add_with(delete, |values| {
        values.bind(address.level).bind(signed(address.number));
    });
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
