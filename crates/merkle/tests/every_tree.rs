//! Every tree of up to a few hundred leaves: roots, paths, proofs and verification against the
//! RFC's definitions and two other implementations.

mod common;

use std::convert::Infallible;

use common::{Definition, leaves, rfc_implied_root, rfc_implied_roots};
use merkle::{CompactRange, Hash, LeafHash, LeafIndex, RootHash, TreeSize, proof, verify};

/// All sizes up to this.
const LARGEST: usize = 300;
/// All batches between two sizes up to this.
const LARGEST_FOR_ALL_BATCHES: usize = 140;

fn size(n: usize) -> TreeSize {
    TreeSize::new(n as u64)
}

fn index(n: usize) -> LeafIndex {
    LeafIndex::new(n as u64)
}

fn fold(plan: &proof::ProofPlan, tree: &mut Definition) -> Vec<Hash> {
    let Ok(proof) = plan.fold(|node| Ok::<_, Infallible>(tree.node(node)));
    proof
}

#[test]
fn appending_leaf_by_leaf_gives_the_defined_roots() {
    let mut tree = Definition::of(leaves(LARGEST as u64));
    let mut range = CompactRange::empty();
    assert_eq!(range.root(), merkle::empty_root());
    for n in 1..=LARGEST {
        range.append(tree.leaves[n - 1]);
        assert_eq!(range.size(), size(n));
        assert_eq!(range.root(), tree.root(n));
        let restored = CompactRange::from_parts(range.size(), range.hashes().to_vec());
        assert_eq!(restored.as_ref(), Ok(&range));
    }
}

#[test]
fn every_batch_gives_the_root_the_edge_and_the_path_of_each_of_its_leaves() {
    let mut tree = Definition::of(leaves(LARGEST_FOR_ALL_BATCHES as u64));
    let mut edges = vec![CompactRange::empty()];
    for leaf in &tree.leaves {
        let mut next = edges[edges.len() - 1].clone();
        next.append(*leaf);
        edges.push(next);
    }
    for from in 0..=LARGEST_FOR_ALL_BATCHES {
        for to in from..=LARGEST_FOR_ALL_BATCHES {
            let growth = edges[from].grow(&tree.leaves[from..to]);
            assert_eq!((growth.from(), growth.size()), (size(from), size(to)));
            assert_eq!(growth.root(), tree.root(to));
            assert_eq!(growth.range(), &edges[to]);
            for leaf in from..to {
                let path = growth.path(index(leaf)).expect("a leaf of the batch");
                assert_eq!(path, tree.path(leaf, to), "{leaf} of {from}..{to}");
            }
            assert_eq!(growth.path(index(to)), None);
            assert_eq!(from.checked_sub(1).and_then(|n| growth.path(index(n))), None);
        }
    }
}

#[test]
fn every_inclusion_proof_is_the_defined_one_and_verifies() {
    let mut tree = Definition::of(leaves(LARGEST as u64));
    for n in 1..=LARGEST {
        let root = tree.root(n);
        for leaf in 0..n {
            let plan = proof::inclusion(index(leaf), size(n)).expect("the tree has the leaf");
            let path = fold(&plan, &mut tree);
            assert_eq!(path, tree.path(leaf, n), "{leaf} of {n}");
            assert_eq!(path.len(), plan.len());
            let hash = tree.leaves[leaf];
            let verdict = verify::inclusion(hash, index(leaf), size(n), &path, root);
            assert_eq!(verdict, Ok(()), "{leaf} of {n}");
        }
    }
}

#[test]
fn the_steps_of_every_path_lead_from_the_leaf_to_the_root() {
    let mut tree = Definition::of(leaves(70));
    for n in 1..=70 {
        let root = tree.root(n);
        for leaf in 0..n {
            let path = tree.path(leaf, n);
            let hash = tree.leaves[leaf];
            let steps = verify::inclusion_steps(hash, index(leaf), size(n), &path).expect("the path fits");
            let mut node = Hash::from(hash);
            for (step, sibling) in steps.iter().zip(&path) {
                let pair = (step.left, step.right);
                let expected = if step.sibling_is_left { (*sibling, node) } else { (node, *sibling) };
                assert_eq!(pair, expected, "{leaf} of {n}");
                node = step.parent;
            }
            assert_eq!((steps.len(), node.as_bytes()), (path.len(), root.as_bytes()), "{leaf} of {n}");
            assert!(verify::inclusion_steps(hash, index(n), size(n), &path).is_err());
        }
    }
}

#[test]
fn the_steps_of_every_consistency_proof_lead_to_both_roots_over_the_hashes_of_the_proof() {
    let mut tree = Definition::of(leaves(70));
    for (newer, older) in pairs(70).filter(|(_, older)| *older > 0) {
        let path = tree.proof(older, newer);
        let roots = (tree.root(older), tree.root(newer));
        let steps = verify::consistency_steps(size(older), size(newer), roots.0, &path);
        let steps = steps.expect("the proof leads to the older root");
        for (way, root) in [(&steps.older, roots.0), (&steps.newer, roots.1)] {
            let mut node = steps.start;
            for step in way {
                let own = if step.sibling_is_left { step.right } else { step.left };
                assert_eq!(own, node, "{older} to {newer}");
                assert_eq!(step.parent, merkle::hash_children(step.left, step.right));
                node = step.parent;
            }
            assert_eq!(node, Hash::from(root), "{older} to {newer}");
        }
        let sibling = |step: &verify::PathStep| if step.sibling_is_left { step.left } else { step.right };
        let start = steps.start_is_given.then_some(steps.start);
        let given: Vec<Hash> = start.into_iter().chain(steps.newer.iter().map(sibling)).collect();
        assert_eq!(given, path, "{older} to {newer}");
        let left = steps.newer.iter().filter(|step| step.sibling_is_left).map(sibling);
        assert!(left.eq(steps.older.iter().map(sibling)), "{older} to {newer}");
        for refused in [
            verify::consistency_steps(size(older), size(older), roots.0, &[]),
            verify::consistency_steps(size(newer), size(older), roots.0, &path),
            verify::consistency_steps(size(older), size(newer), roots.0, &path[1..]),
        ] {
            assert!(refused.is_err(), "{older} to {newer}");
        }
        // A proof that leaves out the older root cannot show that it is another one.
        let wrong = verify::consistency_steps(size(older), size(newer), roots.1, &path);
        assert_eq!(wrong.is_ok(), older.is_power_of_two(), "{older} to {newer}");
    }
}

#[test]
fn every_consistency_proof_is_the_defined_one_and_verifies() {
    let mut tree = Definition::of(leaves(LARGEST as u64));
    for newer in 1..=LARGEST {
        for older in 1..newer {
            let plan = proof::consistency(size(older), size(newer)).expect("it exists");
            let path = fold(&plan, &mut tree);
            assert_eq!(path, tree.proof(older, newer), "{older} to {newer}");
            let roots = (tree.root(older), tree.root(newer));
            let implied = verify::implied_consistency(size(older), size(newer), roots.0, &path);
            assert_eq!(implied, Ok(roots.1), "{older} to {newer}");
            // The node where the climb starts is left out of the proof when it is the older root.
            let whole = older.is_power_of_two();
            let (start, siblings) = if whole { (roots.0.into(), &path[..]) } else { (path[0], &path[1..]) };
            let both = verify::implied_roots(size(older), size(newer), start, siblings);
            assert_eq!(both, Ok(roots), "{older} to {newer}");
        }
        let root = tree.root(newer);
        let same = verify::consistency(size(newer), size(newer), root, root, &[]);
        assert_eq!(same, Ok(()));
    }
}

/// For every small tree, the paths of all its leaves are tried as paths of all leaves of all
/// trees: verification agrees with the RFC's algorithm about each.
#[test]
fn verification_agrees_with_the_rfc_about_misused_inclusion_proofs() {
    const SMALL: usize = 20;
    let mut tree = Definition::of(leaves(SMALL as u64));
    for (from_size, from_leaf) in pairs(SMALL) {
        let hash = tree.leaves[from_leaf];
        let path = tree.path(from_leaf, from_size);
        for (n, leaf) in pairs(SMALL + 2) {
            for path in variants(&path) {
                let expected = rfc_implied_root(hash, leaf as u64, n as u64, &path);
                let implied = verify::implied_root(hash, index(leaf), size(n), &path);
                assert_eq!(implied.ok().map(Hash::from), expected, "{leaf} of {n}: {path:?}");
            }
        }
    }
}

#[test]
fn verification_agrees_with_the_rfc_about_misused_consistency_proofs() {
    const SMALL: usize = 18;
    let mut tree = Definition::of(leaves(SMALL as u64));
    for (newer, older) in pairs(SMALL).filter(|(_, older)| *older > 0) {
        let path = tree.proof(older, newer);
        let root = tree.root(older);
        for (n, m) in pairs(SMALL + 2).filter(|(_, m)| *m > 0) {
            for path in variants(&path) {
                let expected = rfc_implied_roots(m as u64, n as u64, root, &path)
                    .filter(|(first, _)| *first == Hash::from(root))
                    .map(|(_, second)| second);
                let implied = verify::implied_consistency(size(m), size(n), root, &path);
                assert_eq!(implied.ok().map(Hash::from), expected, "{m} to {n}: {path:?}");
            }
        }
    }
}

/// All `(size, index)` with the index below the size.
fn pairs(largest: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=largest).flat_map(|size| (0..size).map(move |index| (size, index)))
}

/// The path, cut short at either end, and made longer.
fn variants(path: &[Hash]) -> Vec<Vec<Hash>> {
    let extra = Hash::from_bytes([7; 32]);
    let mut all = vec![path.to_vec(), [path, &[extra]].concat(), [&[extra], path].concat()];
    if !path.is_empty() {
        all.push(path[1..].to_vec());
        all.push(path[..path.len() - 1].to_vec());
    }
    all
}

#[test]
fn known_roots_of_the_classic_leaves() {
    let inputs =
        ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut range = CompactRange::empty();
    for (input, root) in inputs.into_iter().zip(roots) {
        let entry = data_encoding::HEXLOWER.decode(input.as_bytes()).expect("hex");
        range.append(merkle::hash_leaf(&entry));
        assert_eq!(range.root().to_string(), root);
    }
}

mod rs_merkle_agrees {
    use super::*;
    use rs_merkle::{Hasher, MerkleTree};
    use sha2::{Digest, Sha256};

    /// `rs_merkle` with the hashes of RFC 9162.
    #[derive(Clone)]
    struct Rfc9162;

    impl Hasher for Rfc9162 {
        type Hash = [u8; 32];

        fn hash(data: &[u8]) -> [u8; 32] {
            Sha256::digest([&[0], data].concat()).into()
        }

        fn concat_and_hash(left: &[u8; 32], right: Option<&[u8; 32]>) -> [u8; 32] {
            match right {
                Some(right) => Sha256::digest([&[1], &left[..], &right[..]].concat()).into(),
                None => *left,
            }
        }
    }

    #[test]
    fn on_every_root_and_every_inclusion_proof() {
        let entries = (0..LARGEST as u64).map(|n| Rfc9162::hash(&n.to_be_bytes()));
        let entries: Vec<[u8; 32]> = entries.collect();
        let ours: Vec<LeafHash> = leaves(LARGEST as u64);
        for n in 1..=LARGEST {
            let theirs = MerkleTree::<Rfc9162>::from_leaves(&entries[..n]);
            let growth = CompactRange::empty().grow(&ours[..n]);
            assert_eq!(theirs.root(), Some(*growth.root().as_bytes()));
            for leaf in 0..n {
                let path = growth.path(index(leaf)).expect("a leaf of the batch");
                let path: Vec<_> = path.iter().map(|hash| *hash.as_bytes()).collect();
                assert_eq!(theirs.proof(&[leaf]).proof_hashes(), path, "{leaf} of {n}");
            }
        }
    }
}

mod ct_merkle_agrees {
    use super::*;
    use ct_merkle::{
        ConsistencyProof, InclusionProof, RootHash as TheirRoot, mem_backed_tree::MemoryBackedTree,
    };
    use sha2::Sha256;

    /// Fewer sizes: their proofs are made from scratch, each time.
    const LARGEST: usize = 90;

    fn their_root(root: RootHash, n: usize) -> TheirRoot<Sha256> {
        TheirRoot::new((*root.as_bytes()).into(), n as u64)
    }

    #[test]
    fn on_every_root_and_every_proof() {
        let mut tree = Definition::of(leaves(LARGEST as u64));
        let mut theirs = MemoryBackedTree::<Sha256, [u8; 8]>::new();
        for n in 1..=LARGEST {
            theirs.push((n as u64 - 1).to_be_bytes());
            let root = their_root(tree.root(n), n);
            assert_eq!(theirs.root(), root);
            for leaf in 0..n {
                let path = bytes(&tree.path(leaf, n));
                assert_eq!(theirs.prove_inclusion(leaf).as_bytes(), path);
                let proof = InclusionProof::<Sha256>::from_bytes(path);
                let entry = (leaf as u64).to_be_bytes();
                root.verify_inclusion(&entry, leaf as u64, &proof).expect("theirs verifies ours");
            }
            for older in 1..n {
                let path = bytes(&tree.proof(older, n));
                assert_eq!(theirs.prove_consistency(n - older).as_bytes(), path);
                let proof = ConsistencyProof::<Sha256>::try_from_bytes(path).expect("well formed");
                let older_root = their_root(tree.root(older), older);
                root.verify_consistency(&older_root, &proof).expect("theirs verifies ours");
            }
        }
    }

    fn bytes(path: &[Hash]) -> Vec<u8> {
        path.iter().flat_map(|hash| *hash.as_bytes()).collect()
    }
}
