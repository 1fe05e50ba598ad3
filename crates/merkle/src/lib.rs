//! The Merkle tree of RFC 9162, section 2.1: hashes, proofs, verification and tiles.
//!
//! The crate is pure computation. A proof is made in two steps: a [`proof::ProofPlan`] names the required nodes, and
//! folds their hashes. So the same code serves a database, a directory of tiles and a test, and all trees of a few
//! hundred leaves are tested exhaustively.
//!
//! Entry points:
//! * a log grows a [`CompactRange`] with [`CompactRange::grow`], which returns the new root and the path of each new
//!   leaf, and with [`tile::OpenTiles`] the tiles to store, without reading any;
//! * a server of proofs makes a [`proof::ProofPlan`], locates its nodes with [`tile`], and folds;
//! * a client verifies with [`verify`].
//!
//! Not here: I/O, encodings of proofs (COSE is in `scitt`, C2SP text in `tlog`), and the meaning of entries. The only
//! rule specific to Tabellion logs is [`EntryDigest`]: an entry is the SHA-256 of a statement.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use merkle::{CompactRange, LeafIndex, TreeSize, hash_leaf, verify};
//!
//! let leaves = [hash_leaf(b"first"), hash_leaf(b"second"), hash_leaf(b"third")];
//! let grown = CompactRange::default().grow(&leaves);
//! let second = LeafIndex::new(1);
//! let path = grown.path(second).ok_or("the leaf is new")?;
//! let root = grown.into_range().root();
//! verify::inclusion(leaves[1], second, TreeSize::new(3), &path, root)?;
//! # Ok(())
//! # }
//! ```

mod growth;
mod hash;
mod number;
pub mod proof;
mod range;
pub mod tile;
pub mod verify;

pub use growth::TreeGrowth;
pub use hash::{EntryDigest, Hash, LeafHash, NotAHash, RootHash, empty_root, hash_children, hash_leaf};
pub use number::{LeafIndex, NodeId, TreeSize};
pub use range::{BadRange, CompactRange, MAX_TREE_SIZE};
pub use verify::ProofError;
