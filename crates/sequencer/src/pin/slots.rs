//! The bytes of one register file.
//!
//! A file has two slots, each in disk blocks of its own, and a raise writes the one that does not hold the newest pin: one flush
//! of data, for a batch waits for it. A slot that a crash left half-written fails its check, and the pin before it stands: the
//! raise had not returned, so nothing was signed.

use merkle::{EntryDigest, TreeSize};

use super::Pin;

/// The first line of a slot.
const HEADER: &str = "tabellion pin v3";
/// Bytes of a slot: no disk tears one by writing the other.
pub(super) const SLOT_BYTES: usize = 4096;
/// Bytes of a file: its two slots.
pub(super) const FILE_BYTES: usize = 2 * SLOT_BYTES;

/// A pin as it stands in a file.
pub(super) struct Slot {
    pub(super) pin: Pin,
    /// Which slot.
    pub(super) number: usize,
    /// Counts raises: the newest slot has the most.
    pub(super) turn: u64,
}

/// A new file with both slots, so that later writes change no size and nothing has to be flushed but their data.
pub(super) fn new_file(pin: &Pin) -> Result<Vec<u8>, &'static str> {
    Ok([encode(0, pin)?, vec![b' '; SLOT_BYTES]].concat())
}

/// The lines of a pin, the last one over the others against damage, and spaces to the end.
pub(super) fn encode(turn: u64, pin: &Pin) -> Result<Vec<u8>, &'static str> {
    let Pin { origin, size, root, epoch } = pin;
    let body = format!("{HEADER}\nlog {origin}\nsize {size}\nroot {root}\nepoch {epoch}\nturn {turn}\n");
    let mut text = format!("{body}check {}\n", EntryDigest::of(body.as_bytes())).into_bytes();
    if text.len() >= SLOT_BYTES {
        return Err("the log's name is too long for it");
    }
    text.resize(SLOT_BYTES - 1, b' ');
    text.push(b'\n');
    Ok(text)
}

/// The newest sound slot of a file.
pub(super) fn newest(bytes: &[u8]) -> Result<Slot, &'static str> {
    if bytes.len() != FILE_BYTES {
        return Err("another length");
    }
    let slots = bytes.chunks(SLOT_BYTES).enumerate().map(|(number, bytes)| decode(bytes, number));
    let newer = |one: Result<Slot, _>, two| match (one, two) {
        (Ok(one), Ok(two)) => Ok(if one.turn >= two.turn { one } else { two }),
        (Ok(sound), Err(_)) | (Err(_), Ok(sound)) => Ok(sound),
        (Err(why), Err(_)) => Err(why),
    };
    slots.reduce(newer).unwrap_or(Err("empty"))
}

fn decode(bytes: &[u8], number: usize) -> Result<Slot, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text")?;
    let text = text.strip_suffix('\n').ok_or("cut short")?.trim_end_matches(' ');
    let (body, check) = text.rsplit_once("check ").ok_or("no check line")?;
    let check = check.strip_suffix('\n').and_then(|check| check.parse().ok());
    if check != Some(EntryDigest::of(body.as_bytes())) {
        return Err("its check line does not match");
    }
    let mut lines = body.lines();
    if lines.next() != Some(HEADER) {
        return Err("another version");
    }
    let mut field = |name| lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing");
    let origin = field("log ")?.to_owned();
    let size = field("size ")?.parse().map_err(|_| "no size")?;
    let root = field("root ")?.parse().map_err(|_| "no root")?;
    let epoch = field("epoch ")?.parse().map_err(|_| "no epoch")?;
    let turn = field("turn ")?.parse().map_err(|_| "no turn")?;
    Ok(Slot { pin: Pin { origin, size: TreeSize::new(size), root, epoch }, number, turn })
}
