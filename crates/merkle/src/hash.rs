//! The hashes of RFC 9162, section 2.1.1, with SHA-256; one type for each kind of hashed data.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

/// Prefix byte of the input of a leaf hash.
const LEAF: u8 = 0x00;
/// Prefix byte of the input of a node hash.
const NODE: u8 = 0x01;

/// Error: the text is not 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 64 lowercase hexadecimal digits")]
pub struct NotAHash;

macro_rules! sha256_value {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Wraps 32 bytes without hashing.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes of the hash.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        /// Writes lowercase hexadecimal digits.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        /// Parses exactly the output of `Display`.
        impl FromStr for $name {
            type Err = NotAHash;

            fn from_str(text: &str) -> Result<Self, NotAHash> {
                from_hex(text).map(Self)
            }
        }
    };
}

sha256_value! {
    /// The hash of a node: a leaf, the root of a subtree, or the root of a tree.
    Hash
}
sha256_value! {
    /// The hash of a leaf, as computed by [`hash_leaf`].
    LeafHash
}
sha256_value! {
    /// The root hash of a tree.
    RootHash
}
sha256_value! {
    /// The SHA-256 of a statement: the entry of a Tabellion log.
    EntryDigest
}

impl From<LeafHash> for Hash {
    fn from(leaf: LeafHash) -> Self {
        Self(leaf.0)
    }
}

impl From<RootHash> for Hash {
    fn from(root: RootHash) -> Self {
        Self(root.0)
    }
}

impl Hash {
    /// Converts the hash of a tree's top node to its root hash.
    pub(crate) const fn into_root(self) -> RootHash {
        RootHash(self.0)
    }
}

impl EntryDigest {
    /// Hashes a statement, which must have an empty unprotected header.
    pub fn of(statement: &[u8]) -> Self {
        Self(Sha256::digest(statement).into())
    }

    /// The leaf hash of the entry; the entry is the 32-byte digest.
    pub fn leaf_hash(&self) -> LeafHash {
        hash_leaf(&self.0)
    }
}

/// Computes a leaf hash: `SHA-256(0x00 || entry)`.
pub fn hash_leaf(entry: &[u8]) -> LeafHash {
    let mut hasher = Sha256::new();
    hasher.update([LEAF]);
    hasher.update(entry);
    LeafHash(hasher.finalize().into())
}

/// Computes a node hash: `SHA-256(0x01 || left || right)`.
pub fn hash_children(left: Hash, right: Hash) -> Hash {
    let mut message = [NODE; 65];
    message[1..33].copy_from_slice(&left.0);
    message[33..].copy_from_slice(&right.0);
    Hash(Sha256::digest(message).into())
}

/// The root hash of the empty tree: SHA-256 of the empty string.
pub fn empty_root() -> RootHash {
    RootHash(Sha256::digest([]).into())
}

fn from_hex(text: &str) -> Result<[u8; 32], NotAHash> {
    let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| NotAHash)?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Ok(bytes)
}

fn nibble(digit: u8) -> Result<u8, NotAHash> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotAHash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_tree_has_the_hash_of_nothing() {
        let sha256_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(empty_root().to_string(), sha256_of_nothing);
    }

    #[test]
    fn leaves_and_nodes_are_hashed_apart() {
        let (left, right) = (Hash([1; 32]), Hash([2; 32]));
        let both = [left.0, right.0].concat();
        assert_ne!(hash_children(left, right).0, hash_leaf(&both).0);
    }

    #[test]
    fn only_lowercase_digits_of_the_right_number_are_a_digest() {
        let digest = EntryDigest::of(b"statement");
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        for bad in [
            text.to_uppercase(),
            text[1..].to_string(),
            format!("{text}0"),
            text.replace(&text[..1], "g"),
            String::new(),
            "é".repeat(32),
        ] {
            assert_eq!(bad.parse::<EntryDigest>(), Err(NotAHash), "{bad}");
        }
    }
}
