//! The chain rule: conditions on the log for the registration of a chained receipt (readings 10 and 11).
//!
//! A chain consists of one issuer's receipts about one agent, `(iss, sub)`. Its first receipt claims to be the first;
//! every later one claims to be the successor of the receipt that it names and, if the log contains that receipt, to
//! have the next position. The log admits one entry per claim, so a chain cannot fork, and a second claim is signed
//! evidence against its issuer. A receipt whose predecessor is absent claims no position, because a wrong hash must not
//! block the right receipt. It is refused if another receipt has the preceding position, because its hash is wrong
//! then. Every receipt also adds a guard for its position and digest, which the decision about its successor looks up.
//!
//! Not here: parsing of the labels (`headers`), and the reports of refused forks (the service).

use merkle::EntryDigest;
use serde_json::Value;

use super::headers::Chain;
use super::rule::VrfRule;
use crate::answers::{Answers, Questions};
use crate::demands::PermitDemands;
use crate::guard::{Guard, GuardKind};
use crate::violation::Violation;

/// The policy's requirement on chains (`chain`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainMode {
    /// Labels are parsed, but chains are not enforced. Entries admitted in this mode make no claim that could refuse an
    /// entry under a later policy with another mode.
    Off,
    /// No forks. A predecessor may be absent from the log; the entry's facts state that it was not verified.
    #[default]
    Linked,
    /// No forks, no gaps, and no receipt outside of a chain.
    Strict,
}

impl ChainMode {
    /// All modes, with their names in policies.
    pub const ALL: [(ChainMode, &'static str); 3] =
        [(ChainMode::Off, "off"), (ChainMode::Linked, "linked"), (ChainMode::Strict, "strict")];

    /// The name of the mode in policies.
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

/// A receipt with its chain.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    /// The issuer of the chain.
    pub iss: &'a str,
    /// The agent of the chain.
    pub sub: &'a str,
    /// The digest of the receipt's entry.
    pub digest: EntryDigest,
    /// The position that the receipt states.
    pub chain: Chain,
}

impl Member<'_> {
    /// Adds the questions to the log that [`check`](Self::check) needs answered.
    pub fn ask(&self, mode: ChainMode, asked: &mut Questions) {
        if let Chain::Link { position, previous } = self.chain
            && mode != ChainMode::Off
        {
            asked.digests.push(previous);
            asked.guards.push(self.place(position - 1, previous));
            asked.guards.push(self.position(position - 1));
        }
    }

    /// Checks the chain rule, and returns its demands, with the fact whether the predecessor was verified. There is no
    /// such fact if there is none or the mode does not require it.
    pub fn check(&self, mode: ChainMode, log: &Answers) -> Result<PermitDemands, Violation> {
        let (position, mut demands) = match self.chain {
            Chain::Unchained if mode == ChainMode::Strict => {
                return Err(
                    VrfRule::ChainRequired.in_header("-70005", "the policy takes chained receipts only")
                );
            }
            Chain::Unchained => return Ok(PermitDemands::default()),
            Chain::Genesis if mode == ChainMode::Off => (0, PermitDemands::default()),
            Chain::Genesis => (0, PermitDemands::guards([self.position(0)])),
            Chain::Link { position, .. } if mode == ChainMode::Off => (position, PermitDemands::default()),
            Chain::Link { position, previous } => (position, self.check_link(mode, position, previous, log)?),
        };
        // The guard is added in every mode, because a later policy may enforce chains.
        demands.guards.push(self.place(position, self.digest));
        Ok(demands)
    }

    /// Checks a receipt with a predecessor.
    fn check_link(
        &self,
        mode: ChainMode,
        position: u64,
        previous: EntryDigest,
        log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        let verified = self.follows(mode, position, previous, log)?;
        let successor = self.guard(GuardKind::VrfSuccessor, &[previous.as_bytes()]);
        let demands = PermitDemands::fact("chain_verified", verified.into());
        Ok(match verified {
            true => PermitDemands { guards: vec![successor, self.position(position)], ..demands },
            false => PermitDemands {
                guards: vec![successor],
                relied_absent: vec![previous],
                relied_free: vec![self.position(position - 1)],
                ..demands
            },
        })
    }

    /// Returns whether the log contains the predecessor, at the position that the receipt implies.
    fn follows(
        &self,
        mode: ChainMode,
        position: u64,
        previous: EntryDigest,
        log: &Answers,
    ) -> Result<bool, Violation> {
        let before = position - 1;
        match (log.entry(&previous), log.guard(&self.place(before, previous))) {
            // Entries are looked up before guards: an entry that is committed between the two look-ups is visible by
            // its guard only.
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
                None => Ok(false),
            },
        }
    }

    /// The guard that claims a position.
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
