//! Tiles, as a log writes them and as a reader uses them.

mod common;

use std::collections::BTreeMap;

use common::{Definition, leaves};
use merkle::{
    CompactRange, Hash, LeafHash, LeafIndex, NodeId, TreeGrowth, TreeSize, proof,
    tile::{self, BadTile, BundleId, OpenTiles, Tile, TileId},
};

/// Three levels of tiles.
const LARGEST: usize = 66_000;

/// Tiles by level and number, the newest version of each.
#[derive(Default)]
struct Stored(BTreeMap<(u8, u64), Vec<u8>>);

impl Stored {
    fn write(&mut self, tiles: Vec<Tile>) {
        for tile in tiles {
            assert_eq!(tile.data.len(), tile.id.byte_len());
            let key = (tile.id.level(), tile.id.number());
            let before = self.0.insert(key, tile.data.clone()).unwrap_or_default();
            assert!(tile.data.starts_with(&before), "{:?} only grows", tile.id);
            assert!(tile.data.len() > before.len(), "{:?} was touched", tile.id);
        }
    }

    fn read(&self, tile: TileId) -> &[u8] {
        let data = &self.0[&(tile.level(), tile.number())];
        tile.cut(data).expect("the tile is stored as wide as the tree needs it")
    }

    fn restart(&self, size: TreeSize) -> OpenTiles {
        let needed = OpenTiles::needed(size);
        let data: Vec<&[u8]> = needed.into_iter().map(|tile| self.read(tile)).collect();
        OpenTiles::restore(size, &data).expect("the tiles that are needed")
    }

    fn node(&self, node: NodeId, size: TreeSize) -> Hash {
        let part = tile::covering(node, size).expect("the tree has the node");
        part.hash(self.read(part.tile)).expect("the tile is long enough")
    }
}

/// A log that grows in batches and stores its tiles.
struct Log {
    edge: CompactRange,
    open: OpenTiles,
    stored: Stored,
}

impl Log {
    fn new() -> Self {
        Self { edge: CompactRange::empty(), open: OpenTiles::empty(), stored: Stored::default() }
    }

    fn append(&mut self, leaves: &[LeafHash]) -> TreeGrowth {
        let growth = self.edge.grow(leaves);
        let (open, touched) = self.open.grow(&growth).expect("the same tree");
        self.stored.write(touched);
        self.open = open;
        self.edge = growth.range().clone();
        assert_eq!(self.open.range(), self.edge);
        growth
    }
}

#[test]
fn a_log_that_never_reads_a_tile_writes_the_tiles_of_its_tree() {
    for batch in [1, 3, 255, 256, 257, 1000] {
        let leaves = leaves(2_100);
        let mut log = Log::new();
        for batch in leaves.chunks(batch) {
            log.append(batch);
        }
        assert_is_all_tiles_of(&log.stored, &leaves, log.edge.size());
    }
}

#[test]
fn three_levels_of_tiles_are_those_of_the_tree() {
    let leaves = leaves(LARGEST as u64);
    let mut log = Log::new();
    for batch in leaves.chunks(7_001) {
        log.append(batch);
    }
    assert_is_all_tiles_of(&log.stored, &leaves, log.edge.size());
    let widths: Vec<u16> = OpenTiles::needed(log.edge.size()).iter().map(|t| t.width()).collect();
    assert_eq!(widths, [208, 1, 1]);
}

/// The content that tlog-tiles defines, and no tile more.
fn assert_is_all_tiles_of(stored: &Stored, leaves: &[LeafHash], size: TreeSize) {
    let mut tree = Definition::of(leaves.to_vec());
    let mut expected = 0;
    for level in 0..8 {
        for number in 0.. {
            let Some(tile) = TileId::at(level, number, size) else { break };
            let nodes =
                (0..u64::from(tile.width())).map(|n| NodeId { level: 8 * level, index: number * 256 + n });
            let data: Vec<u8> = nodes.flat_map(|node| *tree.node(node).as_bytes()).collect();
            assert_eq!(stored.read(tile), data, "{tile:?}");
            expected += 1;
        }
    }
    assert_eq!(stored.0.len(), expected);
}

#[test]
fn a_restart_at_any_size_goes_on_as_if_nothing_had_happened() {
    let leaves = leaves(1_100);
    let mut log = Log::new();
    for n in 0..leaves.len() {
        let growth = log.append(&leaves[n..n + 1]);
        assert_eq!(log.stored.restart(growth.size()), log.open, "{}", growth.size());
    }
}

#[test]
fn at_most_one_tile_of_each_level_is_needed_to_restart() {
    for (size, needed) in [
        (0, vec![]),
        (1, vec![(0, 0, 1)]),
        (255, vec![(0, 0, 255)]),
        (256, vec![(1, 0, 1)]),
        (70_000, vec![(0, 273, 112), (1, 1, 17), (2, 0, 1)]),
        (1 << 62, vec![(7, 0, 64)]),
    ] {
        let tiles = OpenTiles::needed(TreeSize::new(size)).into_iter();
        let tiles: Vec<_> = tiles.map(|t| (t.level(), t.number(), t.width())).collect();
        assert_eq!(tiles, needed, "{size}");
    }
}

#[test]
fn every_proof_of_every_tree_comes_out_of_its_tiles() {
    let leaves = leaves(600);
    let mut log = Log::new();
    log.append(&leaves);
    let mut tree = Definition::of(leaves);
    for n in [1, 2, 255, 256, 257, 300, 511, 512, 513, 600] {
        let size = TreeSize::new(n);
        let fetch = |node| Ok::<_, ()>(log.stored.node(node, size));
        for leaf in 0..n {
            let plan = proof::inclusion(LeafIndex::new(leaf), size).expect("the leaf exists");
            assert_eq!(plan.fold(fetch), Ok(tree.path(leaf as usize, n as usize)));
        }
        for older in 1..n {
            let plan = proof::consistency(TreeSize::new(older), size).expect("it exists");
            assert_eq!(plan.fold(fetch), Ok(tree.proof(older as usize, n as usize)));
        }
    }
}

#[test]
fn a_proof_in_a_large_tree_needs_few_tiles() {
    let size = TreeSize::new(70_000);
    let plan = proof::inclusion(LeafIndex::new(12_345), size).expect("the leaf exists");
    let tiles = tile::needed_for(&plan).into_iter();
    let tiles: Vec<_> = tiles.map(|t| (t.level(), t.number(), t.width())).collect();
    assert_eq!(tiles, [(0, 48, 256), (0, 273, 112), (1, 0, 256), (1, 1, 17)]);
}

#[test]
fn a_node_is_found_only_if_the_tree_has_it() {
    let found = |level, index, size| tile::covering(NodeId { level, index }, TreeSize::new(size));
    assert!(found(0, 0, 0).is_none());
    assert!(found(0, 4, 5).is_some());
    assert!(found(0, 5, 5).is_none());
    assert!(found(2, 0, 5).is_some());
    assert!(found(2, 1, 7).is_none());
    assert!(found(8, 0, 255).is_none());
    assert!(found(8, 0, 256).is_some());
    assert!(found(63, 0, u64::MAX).is_some());
    assert!(found(63, 1, u64::MAX).is_none());
    assert!(found(64, 0, u64::MAX).is_none());
    assert!(found(255, u64::MAX, u64::MAX).is_none());
}

#[test]
fn a_partial_tile_is_part_of_the_tree_only_up_to_its_width() {
    let tile = TileId::at(0, 3, TreeSize::new(800)).expect("the tree has it");
    assert_eq!((tile.width(), tile.is_full()), (32, false));
    assert!(tile.is_in(TreeSize::new(800)) && tile.is_in(TreeSize::new(5_000)));
    assert!(!tile.is_in(TreeSize::new(799)));
    let bundle = BundleId::at(3, TreeSize::new(800)).expect("the tree has it");
    assert!(bundle.is_in(TreeSize::new(800)) && !bundle.is_in(TreeSize::new(799)));
    assert_eq!(BundleId::at(4, TreeSize::new(1024)), None);
}

#[test]
fn a_restart_with_other_tiles_is_refused() {
    let size = TreeSize::new(70_000);
    let tiles = |lens: [usize; 3]| lens.map(|len| vec![0; len]);
    let right = [112 * 32, 17 * 32, 32];
    assert!(OpenTiles::restore(size, &tiles(right)).is_ok());
    let later_versions = OpenTiles::restore(size, &tiles([8192; 3]));
    assert_eq!(later_versions, OpenTiles::restore(size, &tiles(right)));
    let short = OpenTiles::restore(size, &tiles([112 * 32, 17 * 32 - 1, 32]));
    let flaw = BadTile::Short { level: 1, number: 1, given: 543, needed: 544 };
    assert_eq!(short, Err(flaw));
    let missing = OpenTiles::restore(size, &tiles(right)[..2]);
    assert_eq!(missing, Err(BadTile::Count { given: 2, needed: 3 }));
    let huge = TreeSize::new(u64::MAX);
    assert_eq!(OpenTiles::restore(huge, &tiles(right)), Err(BadTile::TooLarge(huge)));
}

#[test]
fn a_batch_on_another_tree_is_refused() {
    let growth = CompactRange::empty().grow(&leaves(3));
    let (open, _) = OpenTiles::empty().grow(&growth).expect("the same tree");
    assert!(open.grow(&growth).is_err());
    let empty_batch = growth.range().grow(&[]);
    assert_eq!(open.grow(&empty_batch), Ok((open.clone(), vec![])));
}

#[test]
fn a_tile_that_is_too_short_gives_no_hash() {
    let node = NodeId { level: 1, index: 1 };
    let part = tile::covering(node, TreeSize::new(4)).expect("the tree has it");
    assert!(part.hash(&[0; 4 * 32 - 1]).is_err());
    assert!(part.hash(&[]).is_err());
    assert!(part.hash(&[0; 4 * 32]).is_ok());
}
