//! Taking over: checks the database's head, its open tiles and the pin, and returns the state of a machine that
//! may lead.
//!
//! The checks run before the epoch is raised, and again after. They read a few rows, at most one tile per level,
//! and the pin: the cost does not grow with the tree. Nothing is signed here. A database that contradicts itself
//! or the pin ends in a [`Halt`].

use bytes::Bytes;
use merkle::tile::OpenTiles;
use merkle::{TreeSize, empty_root};
use store::{
    CommittedHead, Head, HeadSignature, LogReader, LogWriter, Pin, PinError, SignatureKind, SignatureStore,
    StoreError, TileAddress, TileStore,
};

use crate::clock::{ClockCheck, ClockOpinion, ClockReference, Now};
use crate::crash::Point;
use crate::limits::CLOCK_TOLERANCE;
use crate::limits::EPOCHS_AT_ONCE;
use crate::machine::Recovered;
use crate::{ClockCorrection, Confirmation, Halt, SequencerParts, SignFailed};

/// Reason why this process cannot lead now.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The database failed; a later attempt may succeed.
    Later(StoreError),
    /// The process may not lead for now, because of its pin or its clock. It follows, and
    /// checks again.
    Ineligible(Halt),
    /// The process must not lead.
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

/// Checks that this process may lead, raises the epoch, and repeats all checks that do not read the tree, as the
/// head may have moved. Then the pin is claimed for the new epoch.
///
/// A process that may not lead ends before the epoch is raised, so it never fences a leader that may. The epoch of
/// a frozen log is not raised: no process commits to it, and its last head may still need a signature.
///
/// `correction`: the clock may be behind the head that this names.
pub(crate) async fn recover(
    parts: &SequencerParts,
    clock: &ClockReference,
    correction: Option<ClockCorrection>,
) -> Result<(Recovered, ClockCheck), Obstacle> {
    let clock = TrustedClock { reference: clock, correction };
    let before = eligible(parts, &clock, None).await?;
    Point::BeforeTakeOver.visit();
    let (mut head, frozen) = take_over(parts, before.pin.as_ref()).await?;
    Point::AfterTakeOver.visit();
    refresh_keys(parts).await?;
    match checked(parts, &clock, &before, &mut head, frozen).await {
        Err(Obstacle::Halt(_)) if parts.store.head().await?.epoch > head.epoch => {
            let why = "another process took over while this one looked".to_owned();
            Err(Obstacle::Later(StoreError::Unavailable(why)))
        }
        checked => checked,
    }
}

/// Performs the checks in the new epoch, and claims the pin at the end.
async fn checked(
    parts: &SequencerParts,
    clock: &TrustedClock<'_>,
    before: &Eligible,
    head: &mut Head,
    frozen: bool,
) -> Result<(Recovered, ClockCheck), Obstacle> {
    let Eligible { pin, clock, .. } = eligible(parts, clock, Some(before)).await?;
    let newest = newest_batch(&*parts.store, head).await?;
    let tiles = open_tiles(&*parts.store, head).await?;
    let signatures = match newest {
        Some(newest) => kept_signatures(parts, &newest).await?,
        None => None,
    };
    if frozen {
        // The epoch of a frozen log was claimed when the log was led last.
        head.epoch = head.epoch.max(pin.map_or(0, |pin| pin.epoch + 1));
    }
    claim_pin(parts, head).await?;
    Ok((Recovered { head: head.clone(), tiles, newest, signatures, frozen }, clock))
}

/// Reads the keys after the epoch was raised, so that no other process can put one in force later.
async fn refresh_keys(parts: &SequencerParts) -> Result<(), Obstacle> {
    let refreshed = parts.signer.refresh().await;
    refreshed.map_err(|SignFailed(why)| Obstacle::Later(StoreError::Unavailable(why)))
}

/// Raises the epoch beyond that of the pin; returns `true` with the last head if the log is frozen.
async fn take_over(parts: &SequencerParts, pin: Option<&Pin>) -> Result<(Head, bool), Obstacle> {
    match raise_epoch(&*parts.store, &parts.holder, pin.map_or(0, |pin| pin.epoch)).await {
        Ok(head) => Ok((head, false)),
        Err(StoreError::Frozen) => Ok((parts.store.head().await?, true)),
        Err(error) => Err(error.into()),
    }
}

/// Raises the epoch until it exceeds `claimed`, the epoch of a pin: after a restore the database may count from a
/// lower epoch.
pub(crate) async fn raise_epoch(
    store: &dyn LogWriter,
    holder: &str,
    claimed: u64,
) -> Result<Head, StoreError> {
    for _ in 0..EPOCHS_AT_ONCE {
        let head = store.take_over(holder).await?;
        if head.epoch > claimed {
            return Ok(head);
        }
    }
    let why = format!("its epoch is being raised beyond {claimed}, that of the pin");
    Err(StoreError::Unavailable(why))
}

/// Claims the pin for the new epoch, before anything is committed in it. Later starts rely on that: if a batch has
/// a newer epoch than a pin, another process led under another pin.
async fn claim_pin(parts: &SequencerParts, head: &Head) -> Result<(), Obstacle> {
    let (size, root) = (head.size(), head.root());
    let pin = Pin { origin: parts.origin.clone(), size, root, epoch: head.epoch };
    match parts.pin.claim(&pin).await {
        Ok(()) => Ok(()),
        Err(error @ (PinError::Superseded(_) | PinError::Ahead(_))) => {
            Err(Obstacle::Later(StoreError::Unavailable(error.to_string())))
        }
        Err(PinError::Disagrees(pin)) => {
            Err(Halt::DatabaseDisagrees { size, signed: pin.root, database: Some(root) }.into())
        }
        Err(error) => Err(Obstacle::Ineligible(Halt::Pin(error.to_string()))),
    }
}

/// Findings about a process that may lead.
struct Eligible {
    pin: Option<Pin>,
    /// Newest signed size in the database, about which the witnesses were asked.
    signed: Option<TreeSize>,
    /// Objection to the pin that the witnesses' confirmation outweighed.
    why_not: Option<Halt>,
    clock: ClockCheck,
}

/// Checks that this process may lead: it has the pin under which the log was led last, or the confirmation of the
/// witnesses, and a clock that is right. `before`: the findings of a moment ago; the witnesses are asked again
/// only if more is signed now, or if the objection to the pin is another one.
///
/// Reads the database, then the pin, then the database again: while another process leads, the pin it raises is
/// never behind the signatures read before it, nor ahead of the head read after it.
async fn eligible(
    parts: &SequencerParts,
    clock: &TrustedClock<'_>,
    before: Option<&Eligible>,
) -> Result<Eligible, Obstacle> {
    let signed = newest_signed(&*parts.store).await?;
    let newest = parts.store.head().await?;
    let newest = newest_batch(&*parts.store, &newest).await?;
    let pin = parts.pin.read().await.map_err(|error| Obstacle::Ineligible(Halt::Pin(error.to_string())))?;
    let head = parts.store.head().await?;
    let why_not = match &pin {
        Some(pin) => {
            check_against(parts, &head, pin).await?;
            is_too_old(parts, pin, newest, signed)
        }
        None => newest.map(|newest| Halt::NoPin {
            size: newest.size.max(signed.unwrap_or(TreeSize::EMPTY)),
            path: parts.pin.place(),
            witnesses: String::new(),
        }),
    };
    if before.is_none_or(|before| before.signed != signed || before.why_not != why_not) {
        ask_witnesses(parts, why_not.clone()).await?;
    }
    let clock = judge_clock(parts, clock, &head).await?;
    Ok(Eligible { pin, signed, why_not, clock })
}

/// Returns [`Halt::PinTooOld`] if another process led under another pin. A pin is claimed for an epoch before that
/// epoch commits, and raised before a signature is published; so the database shows that by a batch of a newer
/// epoch, or by a larger signed head.
fn is_too_old(
    parts: &SequencerParts,
    pin: &Pin,
    newest: Option<CommittedHead>,
    signed: Option<TreeSize>,
) -> Option<Halt> {
    let size = newest.map(|newest| newest.size).max(signed)?;
    let older = newest.is_some_and(|newest| newest.epoch > pin.epoch) || signed > Some(pin.size);
    older.then(|| Halt::PinTooOld {
        pinned: pin.size,
        size,
        path: parts.pin.place(),
        witnesses: String::new(),
    })
}

/// Asks the witnesses. Their confirmation can replace a pin, and their contradiction outweighs one: a pin may be
/// as old as the database, if both were restored from one backup. They are asked also if nothing is signed, as
/// database and pin may have been lost together; a new log does not have to wait for their answer.
async fn ask_witnesses(parts: &SequencerParts, why_not: Option<Halt>) -> Result<(), Obstacle> {
    let limits = &parts.limits;
    let patience = if why_not.is_none() { limits.objection_patience } else { limits.confirm_patience };
    match (parts.witnesses.confirm(patience).await, why_not) {
        (Confirmation::Contradicted(halt), _) => Err(halt.into()),
        (Confirmation::Confirmed { by }, Some(why_not)) => {
            tracing::warn!(%why_not, ?by, "starting without a usable pin: enough witnesses confirmed the newest head");
            Ok(())
        }
        (Confirmation::Unknown(why), Some(why_not)) => Err(Obstacle::Ineligible(why_not.unconfirmed(why))),
        (_, None) => Ok(()),
    }
}

async fn check_against(parts: &SequencerParts, head: &Head, pin: &Pin) -> Result<(), Obstacle> {
    let (size, signed) = (pin.size, pin.root);
    if pin.origin != parts.origin {
        let path = parts.pin.place();
        let halt = Halt::OtherLog { path, pinned: pin.origin.clone(), origin: parts.origin.clone() };
        return Err(Obstacle::Ineligible(halt));
    }
    if size > head.size() {
        return Err(Halt::DatabaseBehind { database: head.size(), signed: size }.into());
    }
    let database = match size {
        TreeSize::EMPTY => Some(empty_root()),
        size => parts.store.head_of_size(size).await?.map(|head| head.root),
    };
    match database == Some(signed) {
        true => Ok(()),
        false => Err(Halt::DatabaseDisagrees { size, signed, database }.into()),
    }
}

/// References for the check of the wall clock, besides other clocks.
struct TrustedClock<'a> {
    reference: &'a ClockReference,
    correction: Option<ClockCorrection>,
}

/// Checks the wall clock against the newest committed time and all other clocks that are known. If a correction
/// states that the newest head's time was ahead, the time in the correction replaces the committed one.
async fn judge_clock(
    parts: &SequencerParts,
    clock: &TrustedClock<'_>,
    head: &Head,
) -> Result<ClockCheck, Obstacle> {
    let (now, opinions) = clock_opinions(parts).await?;
    let is_behind = now.wall.as_secs().saturating_add(CLOCK_TOLERANCE) < head.at;
    let stated = clock.correction.filter(|correction| is_behind && correction.is_of(head));
    let stated = stated.map(|correction| correction.time);
    clock.reference.check(now, stated.unwrap_or(head.at), &opinions, stated).map_err(Obstacle::Ineligible)
}

/// Reads the clocks, and compares them with those of the database's server and the witnesses.
pub(crate) async fn clock_opinions(parts: &SequencerParts) -> Result<(Now, Vec<ClockOpinion>), StoreError> {
    let asked = parts.clock.now();
    let theirs = parts.store.clock().await?;
    let now = parts.clock.now();
    let mut opinions = parts.witnesses.clocks(now);
    opinions.extend(theirs.map(|theirs| ClockOpinion::between("the database", theirs, asked, now)));
    Ok((now, opinions))
}

/// Reads the newest size that has a stored signature (receipt or checkpoint).
pub(crate) async fn newest_signed(store: &dyn SignatureStore) -> Result<Option<TreeSize>, StoreError> {
    let mut newest = None;
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        newest = newest.max(store.newest_signed(kind).await?.map(|signed| signed.head.size));
    }
    Ok(newest)
}

/// Reads the history's newest row, which must match the head.
async fn newest_batch(store: &dyn LogReader, head: &Head) -> Result<Option<CommittedHead>, Obstacle> {
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

/// Reads the open tiles, at most one for each level, and checks them against the edge.
async fn open_tiles(store: &dyn TileStore, head: &Head) -> Result<OpenTiles, Obstacle> {
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

/// Returns the signatures over the newest head, if all that the signer makes are stored and right.
pub(crate) async fn kept_signatures(
    parts: &SequencerParts,
    newest: &CommittedHead,
) -> Result<Option<Vec<HeadSignature>>, StoreError> {
    let kept = known_signatures(parts, newest).await?;
    let has =
        |(kind, kid): &(SignatureKind, Vec<u8>)| kept.iter().any(|it| it.kind == *kind && it.kid == *kid);
    Ok(parts.signer.makes(newest.size).iter().all(has).then_some(kept).filter(|kept| !kept.is_empty()))
}

/// Returns the signatures over a head, except those that are damaged.
pub(crate) async fn known_signatures(
    parts: &SequencerParts,
    head: &CommittedHead,
) -> Result<Vec<HeadSignature>, StoreError> {
    let mut kept = signatures_of(&*parts.store, head.size).await?;
    kept.retain(|signature| {
        let known = parts.signer.knows(head, signature);
        if !known {
            tracing::error!(size = head.size.get(), kind = ?signature.kind, "a stored signature does not verify");
        }
        known
    });
    Ok(kept)
}

/// Reads all signatures over the head of this size.
pub(crate) async fn signatures_of(
    store: &dyn SignatureStore,
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
