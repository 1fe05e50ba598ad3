//! The calls of late, as marks: enough to see that a call repeats another, or is like none before.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::{RECENT_CALLS, REMEMBERED_TOOLS};

/// The beginning of a digest. Two things of one mark are taken for the same: it tunes a risk score, and proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mark(u64);

impl Mark {
    /// The mark of some parts, in their order.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Mark {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&digest.finalize()[..8]);
        Mark(u64::from_be_bytes(first))
    }
}

/// The last calls that were admitted, and the tools that were called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// Tool and arguments of the last calls, the newest last.
    calls: Vec<Mark>,
    /// Tool and shape of the arguments, likewise.
    shapes: Vec<Mark>,
    /// Tools that were called, the newest last.
    tools: Vec<Mark>,
}

impl Recent {
    /// How many of the last calls were this very one.
    #[must_use]
    pub fn repeats(&self, call: Mark) -> usize {
        self.calls.iter().filter(|seen| **seen == call).count()
    }

    /// Whether the tool was called before.
    #[must_use]
    pub fn knows_tool(&self, tool: Mark) -> bool {
        self.tools.contains(&tool)
    }

    /// Whether a call of this shape is among the last ones.
    #[must_use]
    pub fn knows_shape(&self, shape: Mark) -> bool {
        self.shapes.contains(&shape)
    }

    /// Remembers a call that was admitted.
    pub fn remember(&mut self, tool: Mark, call: Mark, shape: Mark) {
        push(&mut self.calls, call, RECENT_CALLS);
        if !self.knows_shape(shape) {
            push(&mut self.shapes, shape, RECENT_CALLS);
        }
        if !self.knows_tool(tool) {
            push(&mut self.tools, tool, REMEMBERED_TOOLS);
        }
    }
}

/// Adds the newest and lets go of the oldest.
fn push(ring: &mut Vec<Mark>, mark: Mark, most: usize) {
    if ring.len() >= most {
        ring.remove(0);
    }
    ring.push(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Mark::of(&[b"ab", b"c"]), Mark::of(&[b"a", b"bc"]));
    }

    #[test]
    fn the_memory_of_calls_has_a_size() {
        let mut recent = Recent::default();
        for i in 0..10_000u32 {
            let mark = Mark::of(&[&i.to_be_bytes()]);
            recent.remember(mark, mark, mark);
        }
        assert_eq!((recent.calls.len(), recent.tools.len()), (RECENT_CALLS, REMEMBERED_TOOLS));
    }
}
