//! Chains: a root envelope and the attestations after it, as a caller presents them (section 5.2; ).

use jose::json::{self, JsonError};
use serde_json::value::RawValue;

use crate::attestation::Attestation;
use crate::denial::Denial;
use crate::envelope::Envelope;
use crate::limits::{CHAIN, MAX_HOPS};
use crate::signed::Signed;
use crate::text::{AgentId, Sha256Digest};

/// A chain whose parts have the right form. Nothing in it is verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    root: Signed<Envelope>,
    hops: Vec<Signed<Attestation>>,
    digest: Sha256Digest,
}

impl Chain {
    /// Parses a JSON array with the root envelope first, then the attestations in the order of the delegations.
    ///
    /// # Errors
    /// [`Denial`] with the code `malformed`, and the hop if one of the objects is at fault.
    pub fn parse(text: &[u8]) -> Result<Chain, Denial> {
        let checked = json::check(text, CHAIN).map_err(|error| malformed(&error))?;
        let objects: Vec<&RawValue> = checked.read().map_err(|error| malformed(&error))?;
        let Some((root, hops)) = objects.split_first() else {
            return Err(Denial::malformed("the array is empty; its first element is the root envelope"));
        };
        if hops.len() > MAX_HOPS {
            let detail = format!("{} attestations, at most {MAX_HOPS} are read", hops.len());
            return Err(Denial::malformed(detail));
        }
        let root = Signed::parse(root.get().as_bytes()).map_err(|error| malformed(&error).at_hop(0))?;
        let hops = hops.iter().enumerate().map(|(before, hop)| {
            Signed::parse(hop.get().as_bytes()).map_err(|error| malformed(&error).at_hop(before + 1))
        });
        Ok(Chain::new(root, hops.collect::<Result<_, _>>()?))
    }

    /// Joins a root envelope and attestations to a chain.
    pub fn new(root: Signed<Envelope>, hops: Vec<Signed<Attestation>>) -> Chain {
        let digest = Sha256Digest::of(&canonical(&root, &hops));
        Chain { root, hops, digest }
    }

    /// Returns the root envelope.
    pub fn root(&self) -> &Signed<Envelope> {
        &self.root
    }

    /// Returns the attestations in the order of the delegations.
    pub fn hops(&self) -> &[Signed<Attestation>] {
        &self.hops
    }

    /// Returns the agent that the last object names. Nothing proves yet that the chain is its own.
    pub fn holder(&self) -> &AgentId {
        let last = self.hops.last().map(|hop| hop.document().holder());
        last.unwrap_or(self.root.document().holder())
    }

    /// Returns the canonical JSON of the chain.
    pub fn canonical(&self) -> Vec<u8> {
        canonical(&self.root, &self.hops)
    }

    /// Returns the digest of the chain: `chain_digest` of a receipt.
    pub fn digest(&self) -> Sha256Digest {
        self.digest
    }
}

fn canonical(root: &Signed<Envelope>, hops: &[Signed<Attestation>]) -> Vec<u8> {
    let objects = std::iter::once(root.canonical()).chain(hops.iter().map(Signed::canonical));
    let mut text = vec![b'['];
    text.extend(objects.collect::<Vec<_>>().join(&b','));
    text.push(b']');
    text
}

fn malformed(error: &JsonError) -> Denial {
    Denial::malformed(error.to_string())
}
