//! Questions of a decision to the log, and the log's answers.
//!
//! Decisions are pure functions: [`PolicyInForce::questions`](crate::PolicyInForce::questions) returns the questions of
//! a decision, the service or an auditor looks up the answers, and passes them to
//! [`decide`](crate::PolicyInForce::decide) as [`Answers`].
//!
//! Entries are never removed, so "present" stays true. "Absent" may become false: a decision that relied on an absence
//! lists it in its permit ([`relied_absent`](crate::Permit::relied_absent),
//! [`relied_free`](crate::Permit::relied_free)), or takes a guard that the missing entry would need, too. An auditor of
//! leaf *i* answers from the entries below *i*.

use std::collections::HashMap;

use merkle::{EntryDigest, LeafIndex};

use crate::guard::Guard;

/// The questions of one decision to the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// Digests of statements: the log answers with the leaf of each that it contains.
    pub digests: Vec<EntryDigest>,
    /// Claims: the log answers with the leaf of the entry that made each of them.
    pub guards: Vec<Guard>,
}

impl Questions {
    /// Returns whether there are no questions.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.guards.is_empty()
    }
}

/// The log's answers to [`Questions`]. Statements and claims without an answer count as absent.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    entries: HashMap<EntryDigest, LeafIndex>,
    guards: HashMap<Guard, LeafIndex>,
}

impl Answers {
    /// The answers of a log that contains none of the statements and claims.
    pub fn none() -> Self {
        Answers::default()
    }

    /// Records that the log contains a statement at a leaf.
    pub fn put_entry(&mut self, digest: EntryDigest, leaf: LeafIndex) {
        self.entries.insert(digest, leaf);
    }

    /// Records that the entry at a leaf made a claim.
    pub fn put_guard(&mut self, guard: Guard, leaf: LeafIndex) {
        self.guards.insert(guard, leaf);
    }

    /// Returns the answers of the log as it was before a leaf: only those that name entries below it.
    pub fn below(&self, leaf: LeafIndex) -> Answers {
        let mut below = self.clone();
        below.entries.retain(|_, found| *found < leaf);
        below.guards.retain(|_, holder| *holder < leaf);
        below
    }

    /// Returns the leaf of a statement, or `None` if it is absent.
    pub fn entry(&self, digest: &EntryDigest) -> Option<LeafIndex> {
        self.entries.get(digest).copied()
    }

    /// Returns the leaf of the entry that made a claim, or `None` if no entry made it.
    pub fn guard(&self, guard: &Guard) -> Option<LeafIndex> {
        self.guards.get(guard).copied()
    }
}
