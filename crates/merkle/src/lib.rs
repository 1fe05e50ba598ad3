//! The Merkle tree of RFC 9162, section 2.1: hashes, proofs, verification and tiles.
//!
//! Everything here is arithmetic. Proof code first names the nodes it wants (a [`proof::Plan`])
//! and then folds what it is given, so this crate can serve a database, a directory of tiles and
//! a test in the same way, and every tree of a few hundred leaves is tested exhaustively.
//!
//! The ways in:
//! * a log grows a [`CompactRange`] with [`CompactRange::grow`], which gives the new root, the
//!   path of each new leaf, and with [`tile::OpenTiles`] the tiles to store; nothing is read;
//! * a server of proofs makes a [`proof::Plan`], asks [`tile`] where the nodes are, and folds;
//! * a client calls [`verify`].
//!
//! Not here: I/O, encodings of proofs (COSE is `scitt`, C2SP text is `tlog`), and what an entry
//! means. The one rule of our logs that is here is [`EntryDigest`]: the entry is the SHA-256 of a
//! statement.

mod growth;
mod hash;
mod number;
pub mod proof;
mod range;
pub mod tile;
pub mod verify;

pub use growth::Growth;
pub use hash::{EntryDigest, Hash, LeafHash, NotAHash, RootHash, empty_root, hash_children, hash_leaf};
pub use number::{LeafIndex, NodeId, TreeSize};
pub use range::{BadRange, CompactRange, MAX_TREE_SIZE};
pub use verify::ProofError;
