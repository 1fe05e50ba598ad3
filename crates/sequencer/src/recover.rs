//! Taking over: from the database's head, its open tiles and the pin to a machine that may lead.
//!
//! Reads one row, at most one tile per level, and the pin: the cost does not grow with the tree.
//! Nothing is signed here. A database that contradicts itself or the pin ends in a [`Halt`].

use bytes::Bytes;
use merkle::TreeSize;
use merkle::tile::OpenTiles;
use store::{CommittedHead, Head, HeadSignature, LogStore, SignatureKind, StoreError, TileAddress};

use crate::clock::ClockJudge;
use crate::crash::Point;
use crate::machine::Recovered;
use crate::pin::{Pin, PinError};
use crate::{Confirmation, Halt, Parts, SignFailed};

/// Why this process cannot lead now.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// It may be able to later.
    Later(StoreError),
    /// It must not.
    Halt(Halt),
}

impl From<StoreError> for Obstacle {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Storage(..) => Self::Later(error),
            StoreError::Refused(why) | StoreError::InUse(why) | StoreError::NoLog(why) => {
                Self::Halt(Halt::Refused(why))
            }
            StoreError::Frozen => Self::Halt(Halt::Frozen),
            StoreError::Damaged(why) => Self::Halt(Halt::Damaged(why)),
        }
    }
}

impl From<Halt> for Obstacle {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

/// Raises the epoch and checks all that can be checked without reading the tree. The epoch of a
/// frozen log stays: nobody commits to it, and its last head may still want a signature.
pub(crate) async fn recover(parts: &Parts) -> Result<(Recovered, ClockJudge), Obstacle> {
    Point::BeforeTakeOver.visit();
    let (head, frozen) = match parts.store.take_over(&parts.holder).await {
        Ok(head) => (head, false),
        Err(StoreError::Frozen) => (parts.store.head().await?, true),
        Err(error) => return Err(error.into()),
    };
    Point::AfterTakeOver.visit();
    refresh_keys(parts).await?;
    check_pin(parts, &head).await?;
    let clock = ClockJudge::start(parts.clock.now(), head.at)?;
    let newest = newest_batch(&*parts.store, &head).await?;
    let tiles = open_tiles(&*parts.store, &head).await?;
    let signatures = match newest {
        Some(newest) => kept_signatures(parts, &newest).await?,
        None => None,
    };
    Ok((Recovered { head, tiles, newest, signatures, frozen }, clock))
}

/// Keys are read after the epoch was raised, so no other process can put one in force later.
async fn refresh_keys(parts: &Parts) -> Result<(), Obstacle> {
    let refreshed = parts.signer.refresh().await;
    refreshed.map_err(|SignFailed(why)| Obstacle::Later(StoreError::Unavailable(why)))
}

/// The pin is read after the epoch was raised, so no commit of another process can be behind it.
async fn check_pin(parts: &Parts, head: &Head) -> Result<(), Obstacle> {
    let pin = read_pin(parts).await?;
    if let Some(pin) = &pin {
        check_against(parts, head, pin).await?;
    }
    let signed = newest_signed(parts).await?;
    ask_witnesses(parts, signed, pin.is_some()).await
}

/// The word of the witnesses can stand for the pin, and it counts against one: that may be as old as the database, if both
/// came out of one backup. Where nothing is signed they are asked too, for database and pin may have been lost together;
/// but a new log need not wait for them.
async fn ask_witnesses(parts: &Parts, signed: Option<TreeSize>, has_pin: bool) -> Result<(), Obstacle> {
    let limits = &parts.limits;
    let needed = signed.filter(|_| !has_pin);
    let patience = if needed.is_none() { limits.objection_patience } else { limits.confirm_patience };
    match (parts.witnesses.confirm(patience).await, needed) {
        (Confirmation::Contradicted(halt), _) => Err(halt.into()),
        (Confirmation::Confirmed { by }, Some(size)) => {
            let path = parts.pin.path().display();
            tracing::warn!(%size, ?by, "there is no pin at {path}: starting on the word of the witnesses");
            Ok(())
        }
        (Confirmation::Unknown(witnesses), Some(size)) => {
            Err(Halt::NoPin { size, path: parts.pin.path().display().to_string(), witnesses }.into())
        }
        _ => Ok(()),
    }
}

pub(crate) async fn read_pin(parts: &Parts) -> Result<Option<Pin>, Halt> {
    let file = parts.pin.clone();
    let read = tokio::task::spawn_blocking(move || file.read()).await;
    let read = read.map_err(|error| Halt::Pin(error.to_string()))?;
    read.map_err(|error: PinError| Halt::Pin(error.to_string()))
}

async fn check_against(parts: &Parts, head: &Head, pin: &Pin) -> Result<(), Obstacle> {
    let (size, signed) = (pin.size, pin.root);
    if pin.origin != parts.origin {
        let path = parts.pin.path().display().to_string();
        return Err(Halt::OtherLog { path, pinned: pin.origin.clone(), origin: parts.origin.clone() }.into());
    }
    if size > head.size() {
        return Err(Halt::DatabaseBehind { database: head.size(), signed: size }.into());
    }
    let database = parts.store.head_of_size(size).await?.map(|head| head.root);
    match database == Some(signed) {
        true => Ok(()),
        false => Err(Halt::DatabaseDisagrees { size, signed, database }.into()),
    }
}

async fn newest_signed(parts: &Parts) -> Result<Option<TreeSize>, StoreError> {
    let mut newest = None;
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        newest = newest.max(parts.store.newest_signed(kind).await?.map(|signed| signed.head.size));
    }
    Ok(newest)
}

/// The history's newest row, which must be what the head says.
async fn newest_batch(store: &dyn LogStore, head: &Head) -> Result<Option<CommittedHead>, Obstacle> {
    if head.batch == 0 && head.size() == TreeSize::EMPTY {
        return Ok(None);
    }
    match store.head_of_size(head.size()).await? {
        Some(row) if row.root == head.root() && row.batch == head.batch && row.at == head.at => Ok(Some(row)),
        Some(row) => {
            damaged(format!("its head is of batch {}, its history ends otherwise: {row:?}", head.batch))
        }
        None => damaged(format!("its head is at size {}, and no batch of its history is", head.size())),
    }
}

/// At most one tile for each level, checked against the edge.
async fn open_tiles(store: &dyn LogStore, head: &Head) -> Result<OpenTiles, Obstacle> {
    let needed = OpenTiles::needed(head.size());
    let address = |tile: &merkle::tile::TileId| TileAddress { level: tile.level(), number: tile.number() };
    let addresses: Vec<TileAddress> = needed.iter().map(address).collect();
    let stored = store.tiles(&addresses).await?;
    let Some(stored) = stored.into_iter().collect::<Option<Vec<Bytes>>>() else {
        return damaged("a tile of its right edge is missing".to_owned());
    };
    match OpenTiles::restore(head.size(), &stored) {
        Ok(tiles) if tiles.range() == head.edge => Ok(tiles),
        Ok(_) => damaged("its tiles are not those of its head".to_owned()),
        Err(error) => damaged(error.to_string()),
    }
}

/// The signatures over the newest head, if all that the signer makes are there and right.
pub(crate) async fn kept_signatures(
    parts: &Parts,
    newest: &CommittedHead,
) -> Result<Option<Vec<HeadSignature>>, StoreError> {
    let kept = known_signatures(parts, newest).await?;
    let has =
        |(kind, kid): &(SignatureKind, Vec<u8>)| kept.iter().any(|it| it.kind == *kind && it.kid == *kid);
    Ok(parts.signer.makes(newest.size).iter().all(has).then_some(kept).filter(|kept| !kept.is_empty()))
}

/// The signatures over a head, but those that are damaged.
pub(crate) async fn known_signatures(
    parts: &Parts,
    head: &CommittedHead,
) -> Result<Vec<HeadSignature>, StoreError> {
    let mut kept = signatures_of(&*parts.store, head.size).await?;
    kept.retain(|signature| {
        let known = parts.signer.knows(head, signature);
        if !known {
            tracing::error!(size = %head.size, kind = ?signature.kind, "a stored signature does not verify");
        }
        known
    });
    Ok(kept)
}

/// All signatures over the head of this size.
pub(crate) async fn signatures_of(
    store: &dyn LogStore,
    size: TreeSize,
) -> Result<Vec<HeadSignature>, StoreError> {
    let before = size.get().checked_sub(1).map(TreeSize::new);
    let mut kept = store.signatures(before, 1).await?;
    kept.retain(|signature| signature.size == size);
    Ok(kept)
}

fn damaged<T>(why: String) -> Result<T, Obstacle> {
    Err(Halt::Damaged(why).into())
}
