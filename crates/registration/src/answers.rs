//! What a decision has to know of the log, asked before and answered by whoever has the log.
//!
//! A decision stays a pure function: [`PolicyInForce::questions`](crate::PolicyInForce::questions) says what it would ask,
//! the service or an auditor looks it up, and [`decide`](crate::PolicyInForce::decide) is given the [`Answers`].
//!
//! What is in the log stays there, so "yes" is never out of date. "No" may be: a decision that relied on an absence
//! says so in its permit ([`relied_absent`](crate::Permit::relied_absent), [`relied_free`](crate::Permit::relied_free)),
//! or takes a guard that whatever would turn up has to take as well. An auditor of leaf *i* answers with what stands below *i*.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};

use crate::guard::Guard;

/// What a decision asks of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// Which of these statements are in the log?
    pub digests: Vec<EntryDigest>,
    /// Which of these claims were made, and by which entry?
    pub guards: Vec<Guard>,
}

impl Questions {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.guards.is_empty()
    }
}

/// What the log answered. What was not asked counts as absent.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    entries: HashMap<EntryDigest, LeafIndex>,
    guards: HashMap<Guard, LeafIndex>,
}

impl Answers {
    /// The answers of a log that holds nothing that was asked for.
    pub fn none() -> Self {
        Answers::default()
    }

    /// Tells that a statement stands at a leaf.
    pub fn put_entry(&mut self, digest: EntryDigest, leaf: LeafIndex) {
        self.entries.insert(digest, leaf);
    }

    /// Tells that the entry at a leaf made a claim.
    pub fn put_guard(&mut self, guard: Guard, leaf: LeafIndex) {
        self.guards.insert(guard, leaf);
    }

    /// Where a statement stands.
    pub fn entry(&self, digest: &EntryDigest) -> Option<LeafIndex> {
        self.entries.get(digest).copied()
    }

    /// Which entry made a claim.
    pub fn guard(&self, guard: &Guard) -> Option<LeafIndex> {
        self.guards.get(guard).copied()
    }
}
