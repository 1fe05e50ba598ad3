//! A witness: its key, its HTTP client, and the state of its last exchanges with this process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::ClientError;
use client::witness::{Options, WitnessClient};
use merkle::TreeSize;
use sequencer::{ClockOpinion, Now};
use tlog::key::VerifierKey;
use tlog::note::Note;
use tlog::policy;

use crate::limits::WITNESS_CLOCK_AGE;
use crate::time::now;

/// A witness with a URL.
pub struct HttpWitness {
    /// The witness's name in the policy.
    pub name: String,
    /// The witness's verifier key.
    pub key: VerifierKey,
    /// HTTP client of the witness.
    pub client: WitnessClient,
    state: Mutex<WitnessMemory>,
}

#[derive(Debug, Default)]
struct WitnessMemory {
    /// The size that the witness last saw, as far as this process knows.
    seen: Option<TreeSize>,
    trouble: Option<WitnessFailure>,
    contradiction: Option<WitnessContradiction>,
    last_cosignature: Option<CosignatureTime>,
}

/// A report by a witness of a tree that the database does not contain.
#[derive(Clone, Debug)]
pub struct WitnessContradiction {
    /// The witness's name in the policy.
    pub witness: String,
    /// The witness's verifier key.
    pub key: VerifierKey,
    /// Size of the tree that the witness has seen.
    pub size: TreeSize,
    /// Time of the first report, in Unix seconds.
    pub at: u64,
    /// The checkpoint that the witness shows, not verified; `None` before it was fetched, or if the witness shows none.
    pub checkpoint: Option<Note>,
}

/// The time of a cosignature, with this process's clocks before the request and after the response.
#[derive(Clone, Copy, Debug)]
struct CosignatureTime {
    at: u64,
    sent: Now,
    answered: Now,
}

impl CosignatureTime {
    fn opinion(&self, name: &str, now: Now) -> Option<ClockOpinion> {
        let since = now.steady.saturating_sub(self.answered.steady);
        let theirs = Duration::from_secs(self.at) + since;
        // The same exchange, seen from now: this process's clock may have been set since.
        let took = self.answered.steady.saturating_sub(self.sent.steady);
        let sent = Now { steady: now.steady.saturating_sub(took), ..now };
        let by = format!("the witness {name}");
        (since <= WITNESS_CLOCK_AGE).then(|| ClockOpinion::between(by, theirs, sent, now))
    }
}

/// The failure of the last exchange with a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessFailure {
    /// The reason as one word, as in the metrics.
    pub code: &'static str,
    /// Number of failures in a row.
    pub times: u32,
    /// Time of the last failure, in Unix seconds.
    pub at: u64,
}

impl HttpWitness {
    /// Creates a witness; `None` without a URL: its cosignatures count, but this process cannot request them.
    pub fn new(witness: &policy::PolicyWitness) -> Result<Option<Self>, ClientError> {
        let Some(url) = &witness.url else { return Ok(None) };
        Ok(Some(Self {
            name: witness.name.clone(),
            key: witness.key.clone(),
            client: WitnessClient::new(url, Options::default())?,
            state: Mutex::default(),
        }))
    }

    /// The witness's ID in the store: the whole key, because a key ID is too short to identify it.
    pub fn id(&self) -> Vec<u8> {
        id_of(&self.key)
    }

    /// The size that the witness last saw; `None` before the first response.
    pub fn seen(&self) -> Option<TreeSize> {
        self.state().seen
    }

    /// Records the size that the witness has seen.
    pub fn has_seen(&self, size: TreeSize) {
        self.state().seen = Some(size);
    }

    /// Records the time of a cosignature, by the witness's clock.
    pub fn has_signed_at(&self, at: u64, sent: Now, answered: Now) {
        self.state().last_cosignature = Some(CosignatureTime { at, sent, answered });
    }

    /// The clock difference according to the newest cosignature, if it is not older than [`WITNESS_CLOCK_AGE`].
    pub fn opinion(&self, now: Now) -> Option<ClockOpinion> {
        let last_cosignature = self.state().last_cosignature?;
        last_cosignature.opinion(&self.name, now)
    }

    /// The failure of the last exchange; `None` if it succeeded.
    pub fn trouble(&self) -> Option<WitnessFailure> {
        self.state().trouble.clone()
    }

    /// Clears the failure; returns `true` if there was one.
    pub fn is_well(&self) -> bool {
        self.state().trouble.take().is_some()
    }

    /// Records a failure; returns the number of failures in a row.
    pub fn failed(&self, code: &'static str, at: u64) -> u32 {
        let mut state = self.state();
        let times = state.trouble.as_ref().map_or(0, |trouble| trouble.times).saturating_add(1);
        state.trouble = Some(WitnessFailure { code, times, at });
        times
    }

    /// Records that the witness has seen a tree of this size that the database does not contain.
    pub fn contradicts(&self, size: TreeSize) {
        self.state().contradiction.get_or_insert_with(|| WitnessContradiction {
            witness: self.name.clone(),
            key: self.key.clone(),
            size,
            at: now(),
            checkpoint: None,
        });
    }

    /// Records the checkpoint that the witness shows, if it has contradicted the database.
    pub fn shows(&self, checkpoint: Note) {
        if let Some(contradiction) = &mut self.state().contradiction {
            contradiction.checkpoint = Some(checkpoint);
        }
    }

    /// The first tree that the witness has seen and the database does not contain.
    pub fn contradiction(&self) -> Option<WitnessContradiction> {
        self.state().contradiction.clone()
    }

    fn state(&self) -> MutexGuard<'_, WitnessMemory> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store's ID of the witness with this key: the key as text.
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
        let last_cosignature = CosignatureTime { at: 1005, sent: now(1000, 0), answered: now(1010, 10) };
        let ahead = |at| last_cosignature.opinion("w1", at).map(|opinion| opinion.ahead);
        assert_eq!(ahead(now(1010, 10)), Some(0));
        assert_eq!(ahead(now(1110, 110)), Some(0), "time went by");
        assert_eq!(
            ahead(now(1410, 110)),
            Some(295),
            "the clock of this host was set during the exchange: the difference is not counted"
        );
        assert_eq!(ahead(now(10, 110)), Some(-1095));
        let long_after = 11 + WITNESS_CLOCK_AGE.as_secs();
        assert_eq!(ahead(now(1000 + long_after, long_after)), None);
    }
}
