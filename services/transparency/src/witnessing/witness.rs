//! One witness: its key, the way to it, and what is remembered of it in this process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::ClientError;
use client::witness::{Options, WitnessClient};
use merkle::TreeSize;
use sequencer::{ClockOpinion, Now};
use tlog::key::VerifierKey;
use tlog::policy;

use crate::limits::WITNESS_CLOCK_AGE;

/// A witness that can be asked.
pub struct Witness {
    /// Its name in the policy.
    pub name: String,
    /// Its key.
    pub key: VerifierKey,
    /// The way to it.
    pub client: WitnessClient,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The size that it is believed to have seen.
    seen: Option<TreeSize>,
    trouble: Option<Trouble>,
    heard: Option<Heard>,
}

/// A cosignature's time, with the readings of our clocks before it was asked for and after it came.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: u64,
    asked: Now,
    answered: Now,
}

impl Heard {
    fn opinion(&self, name: &str, now: Now) -> Option<ClockOpinion> {
        let since = now.steady.saturating_sub(self.answered.steady);
        let theirs = Duration::from_secs(self.at) + since;
        // The same exchange, seen from now: our clock may have been set since.
        let took = self.answered.steady.saturating_sub(self.asked.steady);
        let asked = Now { steady: now.steady.saturating_sub(took), ..now };
        let by = format!("the witness {name}");
        (since <= WITNESS_CLOCK_AGE).then(|| ClockOpinion::between(by, theirs, asked, now))
    }
}

/// Why the witness did not cosign when it was asked last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// One word, as in the metrics.
    pub code: &'static str,
    /// How often in a row.
    pub times: u32,
    /// When it was asked last, Unix seconds.
    pub at: u64,
}

impl Witness {
    /// `None` for a witness without a URL: it counts when its cosignature is there, and nobody can ask for it.
    pub fn new(witness: &policy::Witness) -> Result<Option<Self>, ClientError> {
        let Some(url) = &witness.url else { return Ok(None) };
        Ok(Some(Self {
            name: witness.name.clone(),
            key: witness.key.clone(),
            client: WitnessClient::new(url, Options::default())?,
            state: Mutex::default(),
        }))
    }

    /// How the store knows it: by its whole key, for the id is too short to stand for it.
    pub fn id(&self) -> Vec<u8> {
        id_of(&self.key)
    }

    /// The size that it is believed to have seen, if anything was heard of it.
    pub fn seen(&self) -> Option<TreeSize> {
        self.state().seen
    }

    /// It said so.
    pub fn has_seen(&self, size: TreeSize) {
        self.state().seen = Some(size);
    }

    /// It cosigned at this time by its clock.
    pub fn has_signed_at(&self, at: u64, asked: Now, answered: Now) {
        self.state().heard = Some(Heard { at, asked, answered });
    }

    /// What its newest cosignature says of a reading of our clocks, unless it is too long ago.
    pub fn opinion(&self, now: Now) -> Option<ClockOpinion> {
        let heard = self.state().heard?;
        heard.opinion(&self.name, now)
    }

    /// Why it did not cosign when it was asked last.
    pub fn trouble(&self) -> Option<Trouble> {
        self.state().trouble.clone()
    }

    /// It cosigned. Answers whether that is news.
    pub fn is_well(&self) -> bool {
        self.state().trouble.take().is_some()
    }

    /// It did not cosign. Answers how often that was so now, in a row.
    pub fn failed(&self, code: &'static str, at: u64) -> u32 {
        let mut state = self.state();
        let times = state.trouble.as_ref().map_or(0, |trouble| trouble.times).saturating_add(1);
        state.trouble = Some(Trouble { code, times, at });
        times
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the store knows the witness with this key.
pub fn id_of(key: &VerifierKey) -> Vec<u8> {
    key.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: u64, steady: u64) -> Now {
        Now { wall: Duration::from_secs(wall), steady: Duration::from_secs(steady) }
    }

    #[test]
    fn r36_a_witness_s_newest_time_says_for_a_while_by_how_much_our_clock_is_off() {
        let heard = Heard { at: 1005, asked: now(1000, 0), answered: now(1010, 10) };
        let ahead = |at| heard.opinion("w1", at).map(|opinion| opinion.ahead);
        assert_eq!(ahead(now(1010, 10)), Some(0));
        assert_eq!(ahead(now(1110, 110)), Some(0), "time went by");
        assert_eq!(
            ahead(now(1410, 110)),
            Some(295),
            "our clock was set: what the exchange took is no difference"
        );
        assert_eq!(ahead(now(10, 110)), Some(-1095));
        let long_after = 11 + WITNESS_CLOCK_AGE.as_secs();
        assert_eq!(ahead(now(1000 + long_after, long_after)), None);
    }
}
