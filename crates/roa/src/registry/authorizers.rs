//! The number of different authorizers among signers: several keys of one signer are one authorizer, and so is one key
//! under several names.

use std::collections::HashMap;

use super::document::{KeyEntry, KeyRole};
use crate::text::Text;

/// The authorizers of a registry: the signers that are connected by keys have one number.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorizers {
    numbers: HashMap<Text, usize>,
}

impl Authorizers {
    /// Numbers the signers of all authorizers' keys, whether these are still valid or not.
    pub(super) fn of(keys: &[KeyEntry]) -> Authorizers {
        let authorizers = || keys.iter().filter(|key| key.role == KeyRole::Authorizer);
        let mut signers: HashMap<&Text, usize> = HashMap::new();
        for key in authorizers() {
            let next = signers.len();
            signers.entry(&key.signer).or_insert(next);
        }
        let mut groups = Groups((0..signers.len()).collect());
        let mut first_signers: HashMap<String, usize> = HashMap::new();
        for key in authorizers() {
            let signer = signers[&key.signer];
            let first = *first_signers.entry(key.public_key.0.jwk_thumbprint()).or_insert(signer);
            groups.join(first, signer);
        }
        let numbers = signers.into_iter().map(|(signer, number)| (signer.clone(), groups.root(number)));
        Authorizers { numbers: numbers.collect() }
    }

    /// Returns the number of the authorizer that a signer is; `None` if the signer has no authorizer's key.
    pub(super) fn number_of(&self, signer: &Text) -> Option<usize> {
        self.numbers.get(signer).copied()
    }
}

/// Groups of numbers (union-find): each number has a parent, and the root of a group is its own parent.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[other] = one;
    }
}
