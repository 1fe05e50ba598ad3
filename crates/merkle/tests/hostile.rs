//! Whatever is asked for, nothing panics and nothing runs on and on.

mod common;

use common::{rfc_implied_root, rfc_implied_roots};
use merkle::{
    CompactRange, Hash, LeafHash, LeafIndex, MAX_TREE_SIZE, NodeId, RootHash, TreeSize, proof,
    tile::{self, OpenTiles, TilePath},
    verify,
};
use proptest::prelude::*;

/// Numbers where sizes are interesting: small, near powers of two, near the end.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..40,
        (0u32..64, 0u64..4).prop_map(|(bit, less)| (1u64 << bit).wrapping_sub(less)),
        (0u32..64, 0u64..4).prop_map(|(bit, more)| (1u64 << bit) + more),
        u64::MAX - 40..=u64::MAX,
        any::<u64>(),
    ]
}

fn hashes() -> impl Strategy<Value = Vec<Hash>> {
    proptest::collection::vec(any::<[u8; 32]>().prop_map(Hash::from_bytes), 0..140)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn verification_agrees_with_the_rfc_at_any_size(index in number(), size in number(), path in hashes()) {
        let leaf = LeafHash::from_bytes([1; 32]);
        let implied = verify::implied_root(leaf, LeafIndex::new(index), TreeSize::new(size), &path);
        let expected = rfc_implied_root(leaf, index, size, &path);
        prop_assert_eq!(implied.ok().map(Hash::from), expected);
    }

    #[test]
    fn a_path_of_the_right_length_is_taken_at_any_size(index in number(), size in number()) {
        let (leaf, index, size) = (LeafHash::from_bytes([1; 32]), LeafIndex::new(index), TreeSize::new(size));
        let plan = proof::inclusion(index, size);
        prop_assert_eq!(plan.is_ok(), size.holds(index));
        if let Ok(plan) = plan {
            let path = vec![Hash::from_bytes([2; 32]); plan.len()];
            let implied = verify::implied_root(leaf, index, size, &path);
            let expected = rfc_implied_root(leaf, index.get(), size.get(), &path);
            prop_assert_eq!(implied.ok().map(Hash::from), expected);
            prop_assert!(expected.is_some());
        }
    }

    #[test]
    fn consistency_agrees_with_the_rfc_at_any_size(older in number(), newer in number(), path in hashes()) {
        let root = RootHash::from_bytes([3; 32]);
        let (m, n) = (TreeSize::new(older), TreeSize::new(newer));
        let implied = verify::implied_consistency(m, n, root, &path);
        if older != newer {
            let expected = rfc_implied_roots(older, newer, root, &path)
                .filter(|(first, _)| *first == Hash::from(root))
                .map(|(_, second)| second);
            prop_assert_eq!(implied.ok().map(Hash::from), expected);
        }
        let _ = verify::consistency(m, n, root, root, &path);
    }

    /// The lengths agree: what a plan makes is never refused for its length.
    #[test]
    fn a_consistency_plan_makes_what_verification_expects(older in number(), newer in number()) {
        let (m, n) = (TreeSize::new(older), TreeSize::new(newer));
        let plan = proof::consistency(m, n);
        prop_assert_eq!(plan.is_ok(), 0 < older && older <= newer);
        if let Ok(plan) = plan {
            let path = vec![Hash::from_bytes([4; 32]); plan.len()];
            let verdict = verify::implied_consistency(m, n, RootHash::from_bytes([5; 32]), &path);
            let is_length = matches!(verdict, Err(verify::ProofError::Length { .. }));
            prop_assert!(!is_length);
        }
    }

    /// Every node that a plan names is in a tile of the tree.
    #[test]
    fn a_plan_can_be_served_from_tiles_at_any_size(leaf in number(), older in number(), size in number()) {
        let size = TreeSize::new(size);
        let plans = [
            proof::inclusion(LeafIndex::new(leaf), size),
            proof::consistency(TreeSize::new(older), size),
        ];
        for plan in plans.into_iter().flatten() {
            prop_assert!(plan.nodes().iter().all(|node| tile::covering(*node, size).is_some()));
            prop_assert!(tile::needed_for(&plan).iter().all(|tile| tile.is_in(size)));
            prop_assert!(tile::needed_for(&plan).len() <= 17);
            prop_assert!(plan.len() <= 65);
        }
    }

    #[test]
    fn any_node_is_in_a_tile_or_not_in_the_tree(level: u8, index in number(), size in number()) {
        if let Some(part) = tile::covering(NodeId { level, index }, TreeSize::new(size)) {
            prop_assert!(part.first + part.count <= part.tile.width());
            prop_assert!(part.tile.is_in(TreeSize::new(size)));
        }
    }

    #[test]
    fn any_text_is_a_tile_path_or_not(text in "(tile/)?(entries|[0-9]{1,3})?/(x[0-9]{3}/){0,8}[0-9]{0,4}(.p/[0-9]{0,4})?") {
        if let Ok(path) = text.parse::<TilePath>() {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_tree_grows_at_any_size(size in number(), count in 1usize..300) {
        let size = TreeSize::new(size.min(MAX_TREE_SIZE.get()));
        let hashes = (0..size.get().count_ones()).map(|n| Hash::from_bytes([n as u8; 32]));
        let range = CompactRange::from_parts(size, hashes.collect()).expect("the right number");
        let leaves: Vec<_> = (0..count).map(|n| LeafHash::from_bytes([n as u8; 32])).collect();
        let growth = range.grow(&leaves);
        let mut one_by_one = range.clone();
        leaves.iter().for_each(|leaf| one_by_one.append(*leaf));
        prop_assert_eq!(growth.range(), &one_by_one);
        prop_assert_eq!(growth.root(), one_by_one.root());
        for (n, leaf) in (size.get()..).zip(leaves) {
            let index = LeafIndex::new(n);
            let path = growth.path(index).expect("a leaf of the batch");
            let verdict = verify::inclusion(leaf, index, growth.size(), &path, growth.root());
            prop_assert_eq!(verdict, Ok(()));
        }
        let tiles: Vec<_> = OpenTiles::needed(size).iter().map(|t| vec![9; t.byte_len()]).collect();
        let open = OpenTiles::restore(size, &tiles).expect("the tiles that are needed");
        let (open, touched) = open.grow(&growth).expect("the same tree");
        prop_assert_eq!(open.size(), growth.size());
        prop_assert!(touched.iter().all(|tile| tile.data.len() == tile.id.byte_len()));
        prop_assert_eq!(open.range().size(), growth.size());
    }
}

#[test]
fn a_range_with_the_wrong_number_of_hashes_is_refused() {
    let hash = Hash::from_bytes([0; 32]);
    assert!(CompactRange::from_parts(TreeSize::new(5), vec![hash; 2]).is_ok());
    assert!(CompactRange::from_parts(TreeSize::new(5), vec![hash; 3]).is_err());
    assert!(CompactRange::from_parts(TreeSize::new(0), vec![hash]).is_err());
    assert!(CompactRange::from_parts(TreeSize::new(u64::MAX), vec![hash; 64]).is_err());
}
