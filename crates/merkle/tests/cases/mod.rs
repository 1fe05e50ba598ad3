//! The cases of `vectors/merkle`: sound proofs over the eight classic leaves, and each of them
//! damaged in every way that implementations are known to have accepted.
//!
//! What a case is worth is decided by the RFC's own algorithm, not by this crate's.

use std::collections::BTreeMap;

use merkle::{Hash, LeafHash, RootHash, hash_leaf};
use serde::{Deserialize, Serialize};

use crate::common::{Definition, rfc_implied_root, rfc_implied_roots};

/// Proofs of these leaves of these trees.
const INCLUSION: [(u64, u64); 9] = [(0, 1), (0, 2), (2, 3), (1, 5), (4, 5), (3, 7), (6, 7), (0, 8), (5, 8)];
/// Proofs between these sizes.
const CONSISTENCY: [(u64, u64); 9] = [(1, 2), (1, 8), (2, 5), (3, 7), (4, 7), (6, 7), (6, 8), (7, 8), (8, 8)];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionCase {
    pub why: String,
    pub valid: bool,
    pub leaf_index: u64,
    pub tree_size: u64,
    pub leaf_hash: String,
    pub root: String,
    pub path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyCase {
    pub why: String,
    pub valid: bool,
    pub older_size: u64,
    pub newer_size: u64,
    pub older_root: String,
    pub newer_root: String,
    pub path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootCase {
    pub why: String,
    pub entries: Vec<String>,
    pub root: String,
}

/// All cases, by the path of their file below `vectors/merkle`.
#[derive(Default)]
pub struct Cases {
    pub inclusion: BTreeMap<String, InclusionCase>,
    pub consistency: BTreeMap<String, ConsistencyCase>,
    pub roots: BTreeMap<String, RootCase>,
}

impl Cases {
    pub fn all() -> Self {
        let entries = classic_entries();
        let mut tree = Definition::of(entries.iter().map(|entry| hash_leaf(entry)).collect());
        let mut cases = Self::default();
        for (index, size) in INCLUSION {
            cases.damaged_inclusion(&mut tree, index, size);
        }
        cases.impossible_inclusion(&mut tree);
        for (older, newer) in CONSISTENCY {
            cases.damaged_consistency(&mut tree, older, newer);
        }
        cases.impossible_consistency(&mut tree);
        for size in 0..=entries.len() {
            cases.roots.insert(
                format!("roots/{size}.json"),
                RootCase {
                    why: format!("The root of the first {size} classic entries."),
                    entries: entries[..size].iter().map(|entry| hex(entry)).collect(),
                    root: tree.root(size).to_string(),
                },
            );
        }
        cases
    }

    fn damaged_inclusion(&mut self, tree: &mut Definition, index: u64, size: u64) {
        let path = tree.path(index as usize, size as usize);
        let sound = Inclusion {
            index,
            size,
            leaf: tree.leaves[index as usize],
            root: tree.root(size as usize),
            path,
        };
        let folder = format!("inclusion/{index}-of-{size}");
        self.inclusion(&folder, "sound", "The proof as it is made.", &sound);
        assert!(sound.is_valid(), "{folder}");
        let numbers: [(&str, u64, u64); 9] = [
            ("index-minus-1", index.wrapping_sub(1), size),
            ("index-plus-1", index + 1, size),
            ("index-plus-2", index + 2, size),
            ("index-doubled", index * 2, size),
            ("size-minus-1", index, size - 1),
            ("size-plus-1", index, size + 1),
            ("size-doubled", index, size * 2),
            ("size-halved", index, size / 2),
            ("size-0", index, 0),
        ];
        for (name, index, size) in numbers {
            let wrong = Inclusion { index, size, ..sound.clone() };
            let why = match wrong.is_valid() {
                false => "The numbers are not those the proof was made for.",
                true => {
                    "Other numbers than the proof was made for, and it verifies: a proof \
                         does not authenticate the numbers that come with it."
                }
            };
            if index < u64::MAX && (index, size) != (sound.index, sound.size) {
                self.inclusion(&folder, name, why, &wrong);
            }
        }
        let other_leaf = hash_leaf(b"another entry");
        let hashes = [
            ("other-leaf", "The leaf is not in the tree.", other_leaf, sound.root),
            ("other-root", "The root is of another tree.", sound.leaf, root_of(other_leaf)),
            ("empty-root", "The root is of the empty tree.", sound.leaf, merkle::empty_root()),
        ];
        for (name, why, leaf, root) in hashes {
            self.inclusion(&folder, name, why, &Inclusion { leaf, root, ..sound.clone() });
        }
        for (name, why, path) in damaged_paths(&sound.path, sound.root) {
            self.inclusion(&folder, name, why, &Inclusion { path, ..sound.clone() });
        }
    }

    fn impossible_inclusion(&mut self, tree: &mut Definition) {
        let leaf = tree.leaves[0];
        let empty = Inclusion { index: 0, size: 0, leaf, root: merkle::empty_root(), path: vec![] };
        let why = "The empty tree has no leaf.";
        self.inclusion("inclusion/empty-tree", "empty-path", why, &empty);
        let own_root = Inclusion { root: root_of(leaf), ..empty };
        self.inclusion("inclusion/empty-tree", "root-is-the-leaf", why, &own_root);
        let node = merkle::hash_children(tree.leaves[0].into(), tree.leaves[1].into());
        let node_as_leaf = Inclusion {
            index: 0,
            size: 2,
            leaf: LeafHash::from_bytes(*node.as_bytes()),
            root: tree.root(4),
            path: tree.path(0, 4)[1..].to_vec(),
        };
        let why = "A node passed off as a leaf of a smaller tree. The hashes are right, so it \
                   verifies: whoever checks must compute the leaf hash from the entry.";
        self.inclusion("inclusion/node-as-leaf", "given-as-hash", why, &node_as_leaf);
    }

    fn inclusion(&mut self, folder: &str, name: &str, why: &str, case: &Inclusion) {
        let case = InclusionCase {
            why: why.to_owned(),
            valid: case.is_valid(),
            leaf_index: case.index,
            tree_size: case.size,
            leaf_hash: case.leaf.to_string(),
            root: case.root.to_string(),
            path: texts(&case.path),
        };
        self.inclusion.insert(format!("{folder}/{name}.json"), case);
    }

    fn damaged_consistency(&mut self, tree: &mut Definition, older: u64, newer: u64) {
        let sound = Consistency {
            sizes: (older, newer),
            roots: (tree.root(older as usize), tree.root(newer as usize)),
            path: tree.proof(older as usize, newer as usize),
        };
        let folder = format!("consistency/{older}-to-{newer}");
        self.consistency(&folder, "sound", "The proof as it is made.", &sound);
        assert!(sound.is_valid(), "{folder}");
        let sizes = [
            ("sizes-swapped", newer, older),
            ("older-minus-1", older - 1, newer),
            ("older-plus-1", older + 1, newer),
            ("older-doubled", older * 2, newer),
            ("older-0", 0, newer),
            ("newer-minus-1", older, newer - 1),
            ("newer-plus-1", older, newer + 1),
            ("newer-doubled", older, newer * 2),
            ("newer-is-older", older, older),
            ("both-0", 0, 0),
        ];
        for (name, older, newer) in sizes {
            let wrong = Consistency { sizes: (older, newer), ..sound.clone() };
            let why = match wrong.is_valid() {
                false => "The sizes are not those the proof was made for.",
                true => {
                    "Other sizes than the proof was made for, and it verifies: a proof does \
                         not authenticate the sizes that come with it."
                }
            };
            if wrong.sizes != sound.sizes {
                self.consistency(&folder, name, why, &wrong);
            }
        }
        let (first, second) = sound.roots;
        let other = root_of(hash_leaf(b"another entry"));
        let roots = [
            ("roots-swapped", "The roots are in the wrong order.", (second, first)),
            ("other-older-root", "The older tree is another one.", (other, second)),
            ("other-newer-root", "The newer tree is another one.", (first, other)),
            ("older-root-twice", "The newer tree is said to be the older one.", (first, first)),
            ("newer-root-twice", "The older tree is said to be the newer one.", (second, second)),
        ];
        for (name, why, roots) in roots {
            if roots != sound.roots {
                self.consistency(&folder, name, why, &Consistency { roots, ..sound.clone() });
            }
        }
        for (name, why, path) in damaged_paths(&sound.path, first) {
            self.consistency(&folder, name, why, &Consistency { path, ..sound.clone() });
        }
    }

    fn impossible_consistency(&mut self, tree: &mut Definition) {
        let (empty, one) = (merkle::empty_root(), tree.root(1));
        let cases = [
            ("0-to-0", "Nothing can be proven about the empty tree.", (0, 0), (empty, empty)),
            ("0-to-1", "Nothing can be proven about the empty tree.", (0, 1), (empty, one)),
            ("1-to-0", "A tree cannot become smaller.", (1, 0), (one, empty)),
        ];
        for (folder, why, sizes, roots) in cases {
            let folder = format!("consistency/{folder}");
            let mut case = Consistency { sizes, roots, path: vec![] };
            self.consistency(&folder, "empty-path", why, &case);
            case.path = vec![one.into()];
            self.consistency(&folder, "some-path", why, &case);
        }
    }

    fn consistency(&mut self, folder: &str, name: &str, why: &str, case: &Consistency) {
        let case = ConsistencyCase {
            why: why.to_owned(),
            valid: case.is_valid(),
            older_size: case.sizes.0,
            newer_size: case.sizes.1,
            older_root: case.roots.0.to_string(),
            newer_root: case.roots.1.to_string(),
            path: texts(&case.path),
        };
        self.consistency.insert(format!("{folder}/{name}.json"), case);
    }
}

#[derive(Clone)]
struct Inclusion {
    index: u64,
    size: u64,
    leaf: LeafHash,
    root: RootHash,
    path: Vec<Hash>,
}

impl Inclusion {
    fn is_valid(&self) -> bool {
        let implied = rfc_implied_root(self.leaf, self.index, self.size, &self.path);
        implied == Some(self.root.into())
    }
}

#[derive(Clone)]
struct Consistency {
    sizes: (u64, u64),
    roots: (RootHash, RootHash),
    path: Vec<Hash>,
}

impl Consistency {
    /// Equal sizes are outside the RFC's algorithm: equal roots and no path is all there can be.
    fn is_valid(&self) -> bool {
        let (older, newer) = self.sizes;
        if older == newer && older > 0 {
            return self.path.is_empty() && self.roots.0 == self.roots.1;
        }
        let implied = rfc_implied_roots(older, newer, self.roots.0, &self.path);
        implied == Some((self.roots.0.into(), self.roots.1.into()))
    }
}

/// The path with one thing wrong. `root` is what a careless implementation may compare with.
fn damaged_paths(path: &[Hash], root: RootHash) -> Vec<(&'static str, &'static str, Vec<Hash>)> {
    let extra = Hash::from(hash_leaf(b"extra"));
    let root = Hash::from(root);
    let mut damaged = vec![
        ("trailing-hash", "A hash too many at the end.", [path, &[extra]].concat()),
        ("trailing-root", "The root follows the path.", [path, &[root]].concat()),
        ("leading-hash", "A hash too many at the start.", [&[extra], path].concat()),
        ("leading-root", "The root stands before the path.", [&[root], path].concat()),
        ("much-too-long", "More hashes than any tree has levels.", [extra; 70].to_vec()),
    ];
    if let [first, .., last] = path {
        let mut swapped = path.to_vec();
        swapped.reverse();
        damaged.push(("reversed", "The path is in the wrong order.", swapped));
        let doubled = [path, &[*last]].concat();
        damaged.push(("last-hash-twice", "The last hash stands there twice.", doubled));
        let doubled = [&[*first], path].concat();
        damaged.push(("first-hash-twice", "The first hash stands there twice.", doubled));
    }
    if !path.is_empty() {
        let end = path.len() - 1;
        damaged.push(("no-path", "The path is missing.", vec![]));
        damaged.push(("truncated", "The last hash is missing.", path[..end].to_vec()));
        damaged.push(("first-missing", "The first hash is missing.", path[1..].to_vec()));
        for (name, at) in [("first-hash-changed", 0), ("last-hash-changed", end)] {
            let mut changed = path.to_vec();
            let mut bytes = *changed[at].as_bytes();
            bytes[31] ^= 1;
            changed[at] = Hash::from_bytes(bytes);
            damaged.push((name, "One bit of a hash is wrong.", changed));
        }
    }
    damaged
}

/// The leaf as the whole tree.
fn root_of(leaf: LeafHash) -> RootHash {
    RootHash::from_bytes(*leaf.as_bytes())
}

/// The entries with which trees have been tested since RFC 6962.
pub fn classic_entries() -> Vec<Vec<u8>> {
    let entries =
        ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    let decode = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).expect("hex");
    entries.into_iter().map(decode).collect()
}

fn texts(path: &[Hash]) -> Vec<String> {
    path.iter().map(Hash::to_string).collect()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
