//! Content of one register file.
//!
//! A file has two slots, each in disk blocks of its own, and a raise writes the one that does not hold the newest
//! pin: that takes one flush of data, which matters because a batch waits for it. A slot that a crash left
//! half-written fails its checksum, and the earlier pin is valid: the raise had not returned, so nothing was
//! signed.

use merkle::{EntryDigest, TreeSize};

use super::Pin;

/// First line of a slot, with the version of the format; [`newest`] ignores slots with another one.
const HEADER: &str = "tabellion pin v1";
/// Size of a slot in bytes: large enough that a torn write of one slot does not damage the other.
pub(super) const SLOT_BYTES: usize = 4096;
/// Size of a file in bytes: its two slots.
pub(super) const FILE_BYTES: usize = 2 * SLOT_BYTES;

/// Pin as stored in a slot.
pub(super) struct PinSlot {
    pub(super) pin: Pin,
    /// Number of the slot, 0 or 1.
    pub(super) number: usize,
    /// Number of the raise; the newest slot has the largest.
    pub(super) turn: u64,
}

/// Makes the content of a new file with both slots, so that later writes change no size and only their data is
/// flushed.
pub(super) fn new_file(pin: &Pin) -> Result<Vec<u8>, &'static str> {
    Ok([encode(0, pin)?, vec![b' '; SLOT_BYTES]].concat())
}

/// Encodes a pin as lines of text, the last one a checksum over the others, padded with spaces.
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

/// Returns the newest valid slot of a file.
pub(super) fn newest(bytes: &[u8]) -> Result<PinSlot, &'static str> {
    if bytes.len() != FILE_BYTES {
        return Err("another length");
    }
    let slots = bytes.chunks(SLOT_BYTES).enumerate().map(|(number, bytes)| decode(bytes, number));
    let newer = |one: Result<PinSlot, _>, two| match (one, two) {
        (Ok(one), Ok(two)) => Ok(if one.turn >= two.turn { one } else { two }),
        (Ok(sound), Err(_)) | (Err(_), Ok(sound)) => Ok(sound),
        (Err(why), Err(_)) => Err(why),
    };
    slots.reduce(newer).unwrap_or(Err("empty"))
}

fn decode(bytes: &[u8], number: usize) -> Result<PinSlot, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text")?;
    let text = text.strip_suffix('\n').ok_or("cut short")?;
    // From the front, as a batch waits for this, and most of the slot is padding.
    let check = text.find("\ncheck ").ok_or("no check line")? + 1;
    let (body, check) = text.split_at(check);
    let (check, padding) = check.split_once('\n').ok_or("no check line")?;
    let digest = check.strip_prefix("check ").and_then(|digest| digest.parse().ok());
    if digest != Some(EntryDigest::of(body.as_bytes())) || !padding.bytes().all(|byte| byte == b' ') {
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
    Ok(PinSlot { pin: Pin { origin, size: TreeSize::new(size), root, epoch }, number, turn })
}
