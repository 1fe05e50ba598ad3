//! Parts of the simulation: random numbers, clocks, a pin, a signer, statements.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{CommittedHead, HeadSignature, NewEntry, Pin, PinError, PinStore, SignatureKind};
use tokio::task::yield_now;

use crate::clock::Now;
use crate::pin::protocol::{self, Operation, Registers};
use crate::{HeadSigner, SignFailed, Submission, TimeWindow};

/// SplitMix64 generator: the only source of randomness, so that a seed determines the whole run.
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

/// True time of the simulation.
#[derive(Default)]
pub(super) struct Wall(pub(super) AtomicU64);

impl Wall {
    pub(super) fn seconds(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Clock of one host, which may be wrong.
pub(super) struct HostClock {
    pub(super) wall: Arc<Wall>,
    pub(super) ahead: AtomicI64,
}

impl crate::Clock for HostClock {
    fn now(&self) -> Now {
        let steady = self.wall.seconds();
        let wall = steady.saturating_add_signed(self.ahead.load(Ordering::Relaxed));
        Now { wall: Duration::from_secs(wall), steady: Duration::from_secs(steady) }
    }
}

/// Pin in memory, whose operations yield before each step.
#[derive(Clone, Default)]
pub(super) struct MemoryPin(Arc<Mutex<BTreeMap<u64, Pin>>>);

impl MemoryPin {
    pub(super) fn stands(&self) -> Option<Pin> {
        protocol::newest(&self.all().unwrap()).unwrap()
    }

    async fn perform(&self, mut operation: Operation) -> Result<(), PinError> {
        loop {
            yield_now().await;
            if operation.step(self)? {
                return Ok(());
            }
        }
    }
}

impl Registers for MemoryPin {
    fn all(&self) -> Result<Vec<Pin>, PinError> {
        Ok(self.0.lock().unwrap().values().cloned().collect())
    }

    fn create(&self, pin: &Pin) -> Result<bool, PinError> {
        let mut cells = self.0.lock().unwrap();
        let free = !cells.contains_key(&pin.epoch);
        cells.entry(pin.epoch).or_insert_with(|| pin.clone());
        Ok(free)
    }

    fn write(&self, pin: &Pin) -> Result<(), PinError> {
        let mut cells = self.0.lock().unwrap();
        let cell = cells.get_mut(&pin.epoch).ok_or(PinError::Superseded(pin.epoch))?;
        *cell = pin.clone();
        Ok(())
    }

    fn remove(&self, epoch: u64) -> Result<(), PinError> {
        self.0.lock().unwrap().remove(&epoch);
        Ok(())
    }
}

#[async_trait]
impl PinStore for MemoryPin {
    async fn read(&self) -> Result<Option<Pin>, PinError> {
        yield_now().await;
        protocol::newest(&self.all()?)
    }

    async fn claim(&self, pin: &Pin) -> Result<(), PinError> {
        self.perform(Operation::claim(pin)).await
    }

    async fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        self.perform(Operation::raise(pin)).await
    }

    fn place(&self) -> String {
        "memory".into()
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

/// Makes the statement with a number. Every sixth one is allowed in a small tree only.
pub(crate) fn named(name: u64) -> Submission {
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
        largest_tree: (name % 6 == 5).then(|| TreeSize::new(10 + name % 60)),
        decided_under: LeafIndex::new(0),
        relied_absent: Vec::new(),
        relied_free: Vec::new(),
        side_data: Vec::new(),
        is_policy: false,
        corrects: None,
        effect: None,
    }
}
