//! What the simulation is played with: chance, a clock, a signer, statements.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{CommittedHead, HeadSignature, NewEntry, SignatureKind};

use crate::clock::Now;
use crate::{HeadSigner, SignFailed, Submission, TimeWindow};

/// SplitMix64: all the chance there is, so that a seed tells everything.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// The clock that all processes look at.
#[derive(Default)]
pub(super) struct Wall(pub(super) Mutex<u64>);

impl crate::Clock for Wall {
    fn now(&self) -> Now {
        let now = Duration::from_secs(*self.0.lock().unwrap());
        Now { wall: now, steady: now }
    }
}

pub(super) struct Signer;

impl HeadSigner for Signer {
    fn makes(&self, _size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)> {
        vec![(SignatureKind::Receipt, b"key".to_vec())]
    }

    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        let (size, bytes) = (head.size, Bytes::copy_from_slice(head.root.as_bytes()));
        Ok(vec![HeadSignature { size, kind: SignatureKind::Receipt, kid: b"key".to_vec(), bytes }])
    }
}

/// A statement that goes by a number.
pub(super) fn named(name: u64) -> Submission {
    let statement = Bytes::from(format!("statement {name}"));
    Submission {
        entry: NewEntry {
            digest: EntryDigest::of(&statement),
            twin: None,
            statement,
            policy: LeafIndex::new(0),
            rule: String::new(),
            facts: "{}".into(),
            guards: Vec::new(),
            collateral: Vec::new(),
        },
        valid: TimeWindow::ALWAYS,
        decided_under: LeafIndex::new(0),
        relied_absent: Vec::new(),
        beside: Vec::new(),
        is_policy: false,
    }
}
