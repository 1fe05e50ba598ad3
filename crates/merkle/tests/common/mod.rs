//! The tree as the RFC defines it: recursive, slow and plain.
#![allow(dead_code)]

use std::collections::HashMap;

use merkle::{Hash, LeafHash, NodeId, RootHash, hash_children, hash_leaf};

pub fn leaves(count: u64) -> Vec<LeafHash> {
    (0..count).map(|n| hash_leaf(&n.to_be_bytes())).collect()
}

/// MTH (2.1.1), remembering every subtree.
pub struct Definition {
    pub leaves: Vec<LeafHash>,
    known: HashMap<(usize, usize), Hash>,
}

impl Definition {
    pub fn of(leaves: Vec<LeafHash>) -> Self {
        let known = HashMap::new();
        Self { leaves, known }
    }

    pub fn root(&mut self, size: usize) -> RootHash {
        match size {
            0 => merkle::empty_root(),
            _ => RootHash::from_bytes(*self.mth(0, size).as_bytes()),
        }
    }

    pub fn node(&mut self, node: NodeId) -> Hash {
        let width = 1usize << node.level;
        let start = node.index as usize * width;
        self.mth(start, start + width)
    }

    fn mth(&mut self, start: usize, end: usize) -> Hash {
        if end - start == 1 {
            return self.leaves[start].into();
        }
        if let Some(hash) = self.known.get(&(start, end)) {
            return *hash;
        }
        let split = start + largest_power_below(end - start);
        let hash = hash_children(self.mth(start, split), self.mth(split, end));
        self.known.insert((start, end), hash);
        hash
    }

    /// PATH (2.1.3.1).
    pub fn path(&mut self, leaf: usize, size: usize) -> Vec<Hash> {
        let (mut start, mut end) = (0, size);
        let mut path = Vec::new();
        while end - start > 1 {
            let split = start + largest_power_below(end - start);
            if leaf < split {
                path.push(self.mth(split, end));
                end = split;
            } else {
                path.push(self.mth(start, split));
                start = split;
            }
        }
        path.reverse();
        path
    }

    /// PROOF (2.1.4.1).
    pub fn proof(&mut self, older: usize, newer: usize) -> Vec<Hash> {
        self.subproof(older, 0, newer, true)
    }

    fn subproof(&mut self, older: usize, start: usize, end: usize, whole: bool) -> Vec<Hash> {
        if older == end - start {
            return match whole {
                true => Vec::new(),
                false => vec![self.mth(start, end)],
            };
        }
        let split = largest_power_below(end - start);
        if older <= split {
            let mut proof = self.subproof(older, start, start + split, whole);
            proof.push(self.mth(start + split, end));
            proof
        } else {
            let mut proof = self.subproof(older - split, start + split, end, false);
            proof.push(self.mth(start, start + split));
            proof
        }
    }
}

fn largest_power_below(n: usize) -> usize {
    n.next_power_of_two() / 2
}

/// 2.1.3.2, step by step as it is written.
pub fn rfc_implied_root(leaf: LeafHash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut fnode, mut snode) = (index, size - 1);
    let mut r = Hash::from(leaf);
    for p in path {
        if snode == 0 {
            return None;
        }
        if fnode & 1 == 1 || fnode == snode {
            r = hash_children(*p, r);
            while fnode & 1 == 0 && fnode != 0 {
                fnode >>= 1;
                snode >>= 1;
            }
        } else {
            r = hash_children(r, *p);
        }
        fnode >>= 1;
        snode >>= 1;
    }
    (snode == 0).then_some(r)
}

/// 2.1.4.2, step by step as it is written: the roots of both trees.
pub fn rfc_implied_roots(
    first: u64,
    second: u64,
    first_hash: RootHash,
    path: &[Hash],
) -> Option<(Hash, Hash)> {
    if path.is_empty() || first == 0 || first >= second {
        return None;
    }
    let mut path = path.to_vec();
    if first.is_power_of_two() {
        path.insert(0, first_hash.into());
    }
    let (mut fnode, mut snode) = (first - 1, second - 1);
    while fnode & 1 == 1 {
        fnode >>= 1;
        snode >>= 1;
    }
    let (mut fr, mut sr) = (path[0], path[0]);
    for c in &path[1..] {
        if snode == 0 {
            return None;
        }
        if fnode & 1 == 1 || fnode == snode {
            fr = hash_children(*c, fr);
            sr = hash_children(*c, sr);
            while fnode & 1 == 0 && fnode != 0 {
                fnode >>= 1;
                snode >>= 1;
            }
        } else {
            sr = hash_children(sr, *c);
        }
        fnode >>= 1;
        snode >>= 1;
    }
    (snode == 0).then_some((fr, sr))
}
