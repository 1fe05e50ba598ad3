//! The nodes above a tile's hashes, computed once and kept by readers that prove many leaves of one tile.

use super::{FULL_WIDTH, HASH_LEN, TILE_HEIGHT, TilePart};
use crate::{Hash, hash_children};

/// The roots of all perfect subtrees of two or more hashes within a tile. Those of a full tile take 255 hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerNodes {
    width: usize,
    /// The nodes of each height above the tile's hashes, lowest first: `width >> height` of them.
    nodes: Vec<Hash>,
}

impl InnerNodes {
    /// Computes the nodes above a tile's data. Bytes after the last whole hash, or beyond a full tile, are ignored.
    pub fn of(data: &[u8]) -> Self {
        let hashes = data.as_chunks::<HASH_LEN>().0;
        let width = hashes.len().min(usize::from(FULL_WIDTH));
        let mut nodes = Vec::with_capacity(width);
        let leaves: Vec<Hash> = hashes[..width].iter().map(|hash| Hash::from_bytes(*hash)).collect();
        nodes.extend(pairs(&leaves));
        let mut below = 0;
        for height in 1..TILE_HEIGHT {
            let above: Vec<Hash> = pairs(&nodes[below..]).collect();
            below += width >> height;
            nodes.extend(above);
        }
        Self { width, nodes }
    }

    /// Memory of the nodes, in bytes.
    pub fn byte_len(&self) -> usize {
        self.nodes.len() * HASH_LEN
    }

    /// The hash over a part of two or more hashes; `None` for a single hash, and for a part that the tile does not have.
    pub fn get(&self, part: &TilePart) -> Option<Hash> {
        let height = part.count.checked_ilog2().filter(|height| *height > 0)?;
        let position = usize::from(part.first >> height);
        if position >= self.width >> height {
            return None;
        }
        let below: usize = (1..height).map(|lower| self.width >> lower).sum();
        self.nodes.get(below + position).copied()
    }
}

/// The parents of neighbouring nodes; a last one without a neighbour has none.
fn pairs(nodes: &[Hash]) -> impl Iterator<Item = Hash> {
    nodes.as_chunks().0.iter().map(|[left, right]| hash_children(*left, *right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::TileId;
    use crate::{EntryDigest, TreeSize};

    fn data(width: u64) -> Vec<u8> {
        (0..width).flat_map(|n| *EntryDigest::of(&n.to_be_bytes()).leaf_hash().as_bytes()).collect()
    }

    #[test]
    fn every_part_of_every_tile_has_the_hash_that_its_data_gives() {
        for width in 1..=256 {
            let data = data(width);
            let inner = InnerNodes::of(&data);
            let tile = TileId::at(0, 0, TreeSize::new(width)).unwrap();
            for height in 1..=8 {
                let count: u16 = 1 << height;
                for first in (0..256).step_by(usize::from(count)).map(|first| first as u16) {
                    let part = TilePart { tile, first, count };
                    assert_eq!(inner.get(&part), part.hash(&data).ok(), "{count} from {first} of {width}");
                }
            }
        }
    }

    #[test]
    fn a_single_hash_is_no_inner_node() {
        let tile = TileId::at(0, 0, TreeSize::new(8)).unwrap();
        assert_eq!(InnerNodes::of(&data(8)).get(&TilePart { tile, first: 0, count: 1 }), None);
        assert_eq!(InnerNodes::of(&[]).get(&TilePart { tile, first: 0, count: 2 }), None);
    }
}
