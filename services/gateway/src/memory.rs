//! Budgets for the memory of messages and answers, over all clients. The size of a single message is bounded elsewhere;
//! these budgets bound how many large ones are held at a time.
//!
//! A [`Share`] is owned by the bytes that it counts, and is released with the last reference to them
//! ([`Share::attach`]). Copies made from a message (such as one without the gateway's own members) are not counted, so
//! the process may hold a small multiple of the budget.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::limits;

/// Budget for requests of clients.
pub static MESSAGES: Budget = Budget::new(
    limits::HELD_MESSAGE_BYTES,
    limits::HELD_ADDRESS_MESSAGE_BYTES,
    limits::UNCOUNTED_MESSAGE_BYTES,
);
/// Budget for answers of servers that must be buffered as a whole.
pub static ANSWERS: Budget =
    Budget::new(limits::HELD_ANSWER_BYTES, limits::HELD_ANSWER_BYTES, limits::UNCOUNTED_ANSWER_BYTES);

/// A limit on bytes held at a time, in total and per client address.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    most_of_an_address: usize,
    /// Length up to which bytes are not counted.
    uncounted: usize,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// Error: the budget, or the part of it for one address, is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway holds as many bytes as it may")]
pub struct Exhausted;

/// Bytes taken from a [`Budget`]; they are given back on drop.
#[derive(Debug)]
pub struct Share {
    budget: &'static Budget,
    address: Option<IpAddr>,
    bytes: usize,
}

impl Budget {
    const fn new(most: usize, most_of_an_address: usize, uncounted: usize) -> Self {
        let held = Mutex::new(Held { all: 0, by_address: BTreeMap::new() });
        Self { most, most_of_an_address, uncounted, held }
    }

    /// Returns an empty share. With an address, its bytes also count against the limit per address.
    pub const fn share(&'static self, address: Option<IpAddr>) -> Share {
        Share { budget: self, address, bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Changes the share to this number of bytes, more or fewer than before.
    ///
    /// # Errors
    /// [`Exhausted`] if not enough bytes are left; the share stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.change(bytes, false)
    }

    /// Resizes the share for bytes that are already in memory, even beyond the budget.
    fn take(&mut self, bytes: usize) {
        let _always = self.change(bytes, true);
    }

    fn change(&mut self, bytes: usize, forced: bool) -> Result<(), Exhausted> {
        let wanted = if bytes <= self.budget.uncounted { 0 } else { bytes };
        if wanted == self.bytes {
            return Ok(());
        }
        let mut held = self.budget.held();
        let all = held.all - self.bytes + wanted;
        let own = self.address.map(|address| {
            let before = held.by_address.get(&address).copied().unwrap_or_default();
            (address, before - self.bytes + wanted)
        });
        let is_too_much =
            all > self.budget.most || own.is_some_and(|(_, own)| own > self.budget.most_of_an_address);
        if wanted > self.bytes && is_too_much && !forced {
            return Err(Exhausted);
        }
        held.all = all;
        match own {
            Some((address, 0)) => drop(held.by_address.remove(&address)),
            Some((address, own)) => drop(held.by_address.insert(address, own)),
            None => {}
        }
        self.bytes = wanted;
        Ok(())
    }

    /// Moves the share into `bytes`, so that it is released with their last reference.
    pub fn attach(mut self, bytes: Bytes) -> Bytes {
        self.take(bytes.len());
        match self.bytes {
            0 => bytes,
            _ => Bytes::from_owner(Counted { bytes, _share: self }),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.take(0);
    }
}

struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn address(number: u8) -> Option<IpAddr> {
        Some([192, 0, 2, number].into())
    }

    #[test]
    fn an_address_gets_its_part_and_all_together_no_more_than_there_is() {
        static BUDGET: Budget = Budget::new(100, 60, 0);
        let (mut one, mut same, mut other) =
            (BUDGET.share(address(1)), BUDGET.share(address(1)), BUDGET.share(address(2)));
        one.resize(40).unwrap();
        assert_eq!(same.resize(21), Err(Exhausted), "its part is used up");
        other.resize(60).unwrap();
        assert_eq!(same.resize(1), Err(Exhausted), "all is");
        other.resize(10).unwrap();
        same.resize(20).unwrap();
        drop((one, same, other));
        let held = BUDGET.held();
        assert_eq!((held.all, held.by_address.len()), (0, 0));
    }

    #[test]
    fn a_share_lives_as_long_as_the_bytes() {
        static BUDGET: Budget = Budget::new(100, 100, 10);
        let text = BUDGET.share(None).attach(Bytes::from_static(&[7; 50]));
        let part = text.slice(3..4);
        drop(text);
        assert_eq!(BUDGET.held().all, 50);
        drop(part);
        assert_eq!(BUDGET.held().all, 0);
        let small = BUDGET.share(None).attach(Bytes::from_static(&[7; 10]));
        assert_eq!((BUDGET.held().all, small.len()), (0, 10));
    }
}
