//! Pieces as files.
//!
//! ```text
//! <folder>/<number>.leaves      u8 count of hashes, the roots of the perfect subtrees before the piece, the leaves
//! <folder>/<number>.postings    blocks of the run of level 0 (`lookup_tree::PostingBlock`), each after its u32 length
//! <folder>/state.json           everything else
//! ```
//!
//! The number has 16 hexadecimal digits, and lengths have their most significant byte first. A piece that is longer than the
//! state says was written before a crash, and its end is read again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use durable::FileAccess;
use lookup_tree::limits::{LEVEL_0_LEAVES, MAX_BLOCK_BYTES};
use lookup_tree::{BlockWriter, Posting, PostingBlock, read_block};
use merkle::{CompactRange, Hash, LeafHash, LeafIndex, TreeSize};

use crate::error::RecomputationError;
use crate::limits::{MAX_LEAVES_BYTES, MAX_STATE_BYTES};
use crate::piece::Piece;
use crate::state::RecomputationState;

const STATE: &str = "state.json";
/// Length in bytes of a hash.
const HASH: usize = 32;
/// Length in bytes of a block's length.
const LENGTH: usize = 4;

/// A folder of pieces.
#[derive(Clone, Debug)]
pub(crate) struct PieceFolder {
    folder: PathBuf,
}

impl PieceFolder {
    /// Opens a folder; creates it if it does not exist.
    pub(crate) fn open(folder: &Path) -> Result<Self, RecomputationError> {
        let made = durable::make_folder(folder, FileAccess::Secret);
        made.map_err(|why| RecomputationError::file(folder, why))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Reads the state; `None` if there is none.
    pub(crate) fn read_state(&self) -> Result<Option<RecomputationState>, RecomputationError> {
        let path = self.folder.join(STATE);
        let Some(bytes) = read(&path, MAX_STATE_BYTES)? else { return Ok(None) };
        RecomputationState::from_json(&bytes).map(Some).map_err(|why| RecomputationError::damaged(&path, why))
    }

    pub(crate) fn write_state(&self, state: &RecomputationState) -> Result<(), RecomputationError> {
        let path = self.folder.join(STATE);
        let bytes = serde_json::to_vec(state).map_err(|why| RecomputationError::file(&path, why))?;
        write(&path, &bytes)
    }

    /// Reads a piece.
    pub(crate) fn read(&self, number: u64) -> Result<Piece, RecomputationError> {
        let mut piece = self.read_leaves(number)?;
        let mut at = 0;
        while let Some((postings, next)) = self.next_block(number, at)? {
            piece.postings.extend(postings);
            at = next;
        }
        Ok(piece)
    }

    /// Reads the leaves of a piece without its postings.
    pub(crate) fn read_leaves(&self, number: u64) -> Result<Piece, RecomputationError> {
        let path = self.leaves_path(number);
        let bytes = read(&path, MAX_LEAVES_BYTES)?.ok_or_else(|| missing(&path))?;
        decode_leaves(&bytes, number).ok_or_else(|| {
            RecomputationError::damaged(&path, "not a number of hashes and the leaves of a piece")
        })
    }

    /// Writes a piece. Once `Ok`, it survives power loss.
    pub(crate) fn write(&self, piece: &Piece) -> Result<(), RecomputationError> {
        let path = self.postings_path(piece.number());
        let blocks = encode_blocks(piece).map_err(|why| RecomputationError::file(&path, why))?;
        write(&path, &blocks)?;
        write(&self.leaves_path(piece.number()), &encode_leaves(piece))
    }

    /// Reads the block at an offset of a piece's postings, and the offset of the next one; `None` at the end.
    pub(crate) fn next_block(
        &self,
        number: u64,
        at: u64,
    ) -> Result<Option<(Vec<Posting>, u64)>, RecomputationError> {
        let path = self.postings_path(number);
        let bytes = read_block_at(&path, at).map_err(|why| RecomputationError::file(&path, why))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let next = at + (LENGTH + bytes.len()) as u64;
        let start = LeafIndex::new(number.saturating_mul(LEVEL_0_LEAVES));
        let postings = read_block(&bytes, start).map_err(|why| RecomputationError::damaged(&path, why))?;
        Ok(Some((postings, next)))
    }

    /// Finds the leaves with these hashes in the first pieces, with the values of the hashes.
    pub(crate) fn find(
        &self,
        wanted: &BTreeMap<LeafHash, u64>,
        pieces: u64,
    ) -> Result<Vec<(LeafIndex, u64)>, RecomputationError> {
        let mut found = Vec::new();
        for number in 0..pieces {
            found.extend(find_in(&self.read_leaves(number)?, wanted));
        }
        Ok(found)
    }

    fn leaves_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:016x}.leaves"))
    }

    fn postings_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:016x}.postings"))
    }
}

/// The leaves of a piece with these hashes, with the values of the hashes.
pub(crate) fn find_in(piece: &Piece, wanted: &BTreeMap<LeafHash, u64>) -> Vec<(LeafIndex, u64)> {
    let leaves = (piece.start().get()..).zip(&piece.leaves);
    leaves.filter_map(|(leaf, hash)| Some((LeafIndex::new(leaf), *wanted.get(hash)?))).collect()
}

fn encode_leaves(piece: &Piece) -> Vec<u8> {
    let hashes = piece.before.hashes();
    let mut bytes = vec![hashes.len() as u8];
    hashes.iter().for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
    piece.leaves.iter().for_each(|leaf| bytes.extend_from_slice(Hash::from(*leaf).as_bytes()));
    bytes
}

fn decode_leaves(bytes: &[u8], number: u64) -> Option<Piece> {
    let (count, bytes) = bytes.split_first()?;
    let (hashes, leaves) = bytes.split_at_checked(usize::from(*count) * HASH)?;
    let (hashes, []) = hashes.as_chunks::<HASH>() else { return None };
    let (leaves, []) = leaves.as_chunks::<HASH>() else { return None };
    let size = TreeSize::new(number.checked_mul(LEVEL_0_LEAVES)?);
    let hashes = hashes.iter().map(|hash| Hash::from_bytes(*hash)).collect();
    let mut piece = Piece::after(CompactRange::from_parts(size, hashes).ok()?);
    piece.leaves = leaves.iter().map(|leaf| LeafHash::from_bytes(*leaf)).collect();
    (piece.leaves.len() as u64 <= LEVEL_0_LEAVES).then_some(piece)
}

fn encode_blocks(piece: &Piece) -> io::Result<Vec<u8>> {
    let mut writer = BlockWriter::new(piece.start());
    let mut bytes = Vec::new();
    for posting in &piece.postings {
        let full = writer.push(*posting).map_err(io::Error::other)?;
        full.iter().for_each(|block| put_block(&mut bytes, block));
    }
    writer.finish().iter().for_each(|block| put_block(&mut bytes, block));
    Ok(bytes)
}

fn put_block(bytes: &mut Vec<u8>, block: &PostingBlock) {
    bytes.extend_from_slice(&(block.bytes.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&block.bytes);
}

/// Reads the block at an offset; `None` at the end of the file.
fn read_block_at(path: &Path, at: u64) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut buffer = [0; LENGTH + MAX_BLOCK_BYTES];
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    if length == 0 {
        return Ok(None);
    }
    let block = buffer[..length]
        .split_first_chunk::<LENGTH>()
        .and_then(|(block, rest)| rest.get(..usize::try_from(u32::from_be_bytes(*block)).ok()?));
    match block {
        Some(block) if !block.is_empty() => Ok(Some(block.to_vec())),
        _ => Err(io::Error::new(ErrorKind::InvalidData, format!("no block at byte {at}"))),
    }
}

fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, RecomputationError> {
    durable::read(path, most).map_err(|why| RecomputationError::file(path, why))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), RecomputationError> {
    durable::replace(path, bytes, FileAccess::Secret).map_err(|why| RecomputationError::file(path, why))
}

fn missing(path: &Path) -> RecomputationError {
    RecomputationError::file(path, io::Error::from(ErrorKind::NotFound))
}
