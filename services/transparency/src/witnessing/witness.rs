//! One witness: its key, the way to it, and what is remembered of it in this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use client::ClientError;
use client::witness::{Options, WitnessClient};
use merkle::TreeSize;
use tlog::key::VerifierKey;
use tlog::policy;

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
