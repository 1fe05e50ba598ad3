//! The chain rule: what the log must hold for a receipt to stand in its chain (readings 10 and 11).
//!
//! A chain is that of one issuer's receipts about one agent, `(iss, sub)`. Its first receipt claims to be the first; every
//! later one claims to be the successor of the one it names, and, if the log holds that one, to be the one at its position.
//! The log admits one claimant each, so a chain cannot fork; who makes a second claim has signed the proof of it. A receipt
//! whose predecessor the log does not hold claims no position: a wrong hash must not keep the right receipt out. It is
//! refused if another receipt is at the position before, for then the hash is wrong. And every receipt leaves its place as a
//! guard, which nobody else could claim, for its successor to ask after.
//!
//! Not here: how the labels are read (`headers`), what becomes of a refused fork (the service keeps it as a report).

use merkle::EntryDigest;
use serde_json::Value;

use super::headers::Chain;
use super::rule::VrfRule;
use crate::answers::{Answers, Questions};
use crate::decision::Permit;
use crate::guard::{Guard, GuardKind};
use crate::violation::Violation;

/// What a policy asks of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainMode {
    /// Nothing: the labels are read, and no chain is kept whole. What comes now claims nothing against what comes under a
    /// later policy that keeps chains.
    Off,
    /// No forks. A predecessor that the log does not hold may still come; the entry says that it was not verified.
    #[default]
    Linked,
    /// No forks and no gaps; no receipt outside a chain.
    Strict,
}

impl ChainMode {
    /// Every mode, by the name that policies use.
    pub const ALL: [(ChainMode, &'static str); 3] =
        [(ChainMode::Off, "off"), (ChainMode::Linked, "linked"), (ChainMode::Strict, "strict")];

    /// The name that policies use.
    pub fn name(self) -> &'static str {
        match self {
            ChainMode::Off => "off",
            ChainMode::Linked => "linked",
            ChainMode::Strict => "strict",
        }
    }

    pub(crate) fn read(value: &Value) -> Result<ChainMode, String> {
        let named = |name: &str| ChainMode::ALL.iter().find(|(_, known)| *known == name);
        let known = value.as_str().and_then(named).map(|(mode, _)| *mode);
        known.ok_or_else(|| "one of \"off\", \"linked\", \"strict\" is needed here".to_owned())
    }
}

/// A receipt and the chain it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    /// Whose chain.
    pub iss: &'a str,
    /// About whom.
    pub sub: &'a str,
    /// The receipt's entry.
    pub digest: EntryDigest,
    /// What it says of its place.
    pub chain: Chain,
}

impl Member<'_> {
    /// What has to be known of the log before [`check`](Self::check).
    pub fn ask(&self, mode: ChainMode, asked: &mut Questions) {
        if let Chain::Link { position, previous } = self.chain
            && mode != ChainMode::Off
        {
            asked.digests.push(previous);
            asked.guards.push(self.place(position - 1, previous));
            asked.guards.push(self.position(position - 1));
        }
    }

    /// The chain rule; the permit gets what the log must keep unique. Whether the predecessor was verified, if there is one
    /// and it was asked for.
    pub fn check(
        &self,
        mode: ChainMode,
        log: &Answers,
        permit: &mut Permit,
    ) -> Result<Option<bool>, Violation> {
        let mut verified = None;
        let position = match self.chain {
            Chain::Unchained if mode == ChainMode::Strict => {
                return Err(
                    VrfRule::ChainRequired.in_header("-70005", "the policy takes chained receipts only")
                );
            }
            Chain::Unchained => return Ok(None),
            Chain::Genesis => {
                if mode != ChainMode::Off {
                    permit.guards.push(self.position(0));
                }
                0
            }
            Chain::Link { position, previous } => {
                if mode != ChainMode::Off {
                    let follows = self.follows(mode, position, previous, log, permit)?;
                    permit.guards.push(self.guard(GuardKind::VrfSuccessor, &[previous.as_bytes()]));
                    permit.guards.extend(follows.then(|| self.position(position)));
                    verified = Some(follows);
                }
                position
            }
        };
        // Whatever the mode: a policy may ask for whole chains later.
        permit.guards.push(self.place(position, self.digest));
        Ok(verified)
    }

    /// Whether the predecessor is in the log, as the one that the receipt says it is.
    fn follows(
        &self,
        mode: ChainMode,
        position: u64,
        previous: EntryDigest,
        log: &Answers,
        permit: &mut Permit,
    ) -> Result<bool, Violation> {
        let before = position - 1;
        match (log.entry(&previous), log.guard(&self.place(before, previous))) {
            // Entries are asked for before guards: one that came in between is seen by its guard alone.
            (_, Some(_)) => Ok(true),
            (Some(leaf), None) => {
                let detail =
                    format!("leaf {leaf} is not number {before} of this issuer's receipts for this agent");
                Err(VrfRule::ChainMismatch.in_header("-70004", detail))
            }
            (None, None) if mode == ChainMode::Strict => {
                Err(VrfRule::ChainUnknownPredecessor
                    .in_header("-70004", "the log does not hold this receipt"))
            }
            (None, None) => match log.guard(&self.position(before)) {
                Some(leaf) => {
                    let detail =
                        format!("leaf {leaf} is number {before} of this chain, and has another digest");
                    Err(VrfRule::ChainMismatch.in_header("-70004", detail))
                }
                None => {
                    permit.relied_absent.push(previous);
                    permit.relied_free.push(self.position(before));
                    Ok(false)
                }
            },
        }
    }

    /// The claim to be the one at a position.
    fn position(&self, position: u64) -> Guard {
        match position {
            0 => self.guard(GuardKind::VrfGenesis, &[]),
            position => self.guard(GuardKind::VrfPosition, &[&position.to_be_bytes()]),
        }
    }

    fn place(&self, position: u64, digest: EntryDigest) -> Guard {
        self.guard(GuardKind::VrfPlace, &[&position.to_be_bytes(), digest.as_bytes()])
    }

    fn guard(&self, kind: GuardKind, rest: &[&[u8]]) -> Guard {
        Guard::new(kind, &[&[self.iss.as_bytes(), self.sub.as_bytes()], rest].concat())
    }
}
