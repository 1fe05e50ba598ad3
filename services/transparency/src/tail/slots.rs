//! Limits on concurrent streams: in total, and per client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::quota::meter::RateBucket;

/// The slots for concurrent readers.
pub struct StreamSlots(Arc<Mutex<TakenSlots>>);

struct TakenSlots {
    most: usize,
    most_of_one: usize,
    all: usize,
    of: HashMap<RateBucket, usize>,
}

/// Reason why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStreamSlot {
    /// All slots are taken.
    Full,
    /// The client has as many streams as it may have.
    TooMany {
        /// The limit per client.
        most: usize,
    },
}

/// The slot of a reader, free again when dropped.
pub struct StreamSlot {
    places: Arc<Mutex<TakenSlots>>,
    client: RateBucket,
}

impl StreamSlots {
    /// Creates `most` slots in total, with at most `most_of_one` per client.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(Mutex::new(TakenSlots { most, most_of_one, all: 0, of: HashMap::new() })))
    }

    /// Takes a slot for a client.
    pub fn take(&self, client: RateBucket) -> Result<StreamSlot, NoStreamSlot> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.of.get(&client).is_some_and(|own| *own >= taken.most_of_one) {
            return Err(NoStreamSlot::TooMany { most: taken.most_of_one });
        }
        if taken.all >= taken.most {
            return Err(NoStreamSlot::Full);
        }
        taken.all += 1;
        *taken.of.entry(client).or_default() += 1;
        Ok(StreamSlot { places: self.0.clone(), client })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut taken = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.of.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> RateBucket {
        RateBucket::Address([192, 0, 2, number].into())
    }

    #[test]
    fn a_place_that_is_left_can_be_taken_again() {
        let places = StreamSlots::new(2, 1);
        let one = places.take(client(1)).ok().unwrap();
        assert_eq!(places.take(client(1)).err(), Some(NoStreamSlot::TooMany { most: 1 }));
        let _two = places.take(client(2)).ok().unwrap();
        assert_eq!(places.take(client(3)).err(), Some(NoStreamSlot::Full));
        drop(one);
        assert!(places.take(client(1)).is_ok());
    }
}
