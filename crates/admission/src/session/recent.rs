//! The recent calls of a session as hashes, enough to detect repeated and new calls.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::{RECENT_CALLS, REMEMBERED_TOOLS};

/// The first 64 bits of a SHA-256 hash. A collision has little effect: the two tools share a declared cost, or the two
/// calls count as the same one in the risk score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShortHash(u64);

impl ShortHash {
    /// Computes the hash of these parts, in their order. Lengths are hashed too, so that the parts are unambiguous.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> ShortHash {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&digest.finalize()[..8]);
        ShortHash(u64::from_be_bytes(first))
    }
}

/// The last admitted calls, and the tools called so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// Hashes of tool and arguments of the last [`RECENT_CALLS`] calls, newest last.
    calls: Vec<ShortHash>,
    /// Hashes of tool and shape of arguments, without duplicates, newest last.
    shapes: Vec<ShortHash>,
    /// Hashes of the tools called so far, newest last, at most [`REMEMBERED_TOOLS`].
    tools: Vec<ShortHash>,
}

impl Recent {
    /// Returns the number of recent calls with the same tool and arguments.
    #[must_use]
    pub fn repeats(&self, call: ShortHash) -> usize {
        self.calls.iter().filter(|seen| **seen == call).count()
    }

    /// Returns `true` if the tool was called before.
    #[must_use]
    pub fn knows_tool(&self, tool: ShortHash) -> bool {
        self.tools.contains(&tool)
    }

    /// Returns `true` if a call with this shape of arguments is among the recent ones.
    #[must_use]
    pub fn knows_shape(&self, shape: ShortHash) -> bool {
        self.shapes.contains(&shape)
    }

    /// Stores the hashes of an admitted call.
    pub fn remember(&mut self, tool: ShortHash, call: ShortHash, shape: ShortHash) {
        push(&mut self.calls, call, RECENT_CALLS);
        if !self.knows_shape(shape) {
            push(&mut self.shapes, shape, RECENT_CALLS);
        }
        if !self.knows_tool(tool) {
            push(&mut self.tools, tool, REMEMBERED_TOOLS);
        }
    }
}

/// Appends a hash, and removes the oldest if there are `most` already.
fn push(ring: &mut Vec<ShortHash>, hash: ShortHash, most: usize) {
    if ring.len() >= most {
        ring.remove(0);
    }
    ring.push(hash);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(ShortHash::of(&[b"ab", b"c"]), ShortHash::of(&[b"a", b"bc"]));
    }

    #[test]
    fn the_memory_of_calls_has_a_size() {
        let mut recent = Recent::default();
        for i in 0..10_000u32 {
            let hash = ShortHash::of(&[&i.to_be_bytes()]);
            recent.remember(hash, hash, hash);
        }
        assert_eq!((recent.calls.len(), recent.tools.len()), (RECENT_CALLS, REMEMBERED_TOOLS));
    }
}
