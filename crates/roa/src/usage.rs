//! The use of a root envelope so far: who presented it, the pinned manifests, and the budgets spent (R-7, R-14, R-18,
//!
//!
//! A gateway stores it under the envelope's identifier and changes it in the transaction that decides a call, so that
//! replicas and restarts share it.
//!
//! Not here: how it is stored, and what a call costs.

use std::collections::{BTreeMap, BTreeSet};

use decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::capability::Capability;
use crate::denial::{Denial, DenialReason, Dimension, SPENT};
use crate::limits::MAX_LEDGERS;
use crate::registry::{Presenter, Registry};
use crate::scope::Budget;
use crate::text::{AgentId, Sha256Digest, Text, UtcTime};
use crate::verify::{ChainLedger, VerifiedChain};

/// The use of a root envelope and of the chains below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeUse {
    /// The digest of the envelope without its signatures: no other one is used under the same identifiers.
    content: Sha256Digest,
    /// The end of the envelope; the use can be forgotten once it has come by every allowed clock.
    expires_at: UtcTime,
    /// The first presenter of each holder.
    presenters: BTreeMap<AgentId, Presenter>,
    /// The tools of each server for which a chain had a wildcard at the envelope's first use.
    tools: BTreeMap<String, BTreeSet<Text>>,
    /// The amount spent on each ledger, by the digest of the object that declares the budget, without its signatures.
    spent: BTreeMap<Sha256Digest, Decimal>,
}

/// The cost of a call, as far as it is known before the call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedCost {
    /// The highest cost expected.
    pub amount: Decimal,
    /// `true` if the call costs no more than that, as far as anyone has said.
    pub is_known: bool,
}

impl ExpectedCost {
    /// A known cost.
    pub const fn known(amount: Decimal) -> ExpectedCost {
        ExpectedCost { amount, is_known: true }
    }
}

/// The amounts that one call reserves: the same on each ledger of its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spending {
    ledgers: Vec<Sha256Digest>,
    /// The unit of all budgets of the chain; `None` if no hop declares one.
    pub unit: Option<Text>,
    /// The amount.
    pub amount: Decimal,
    /// `false` if the call may cost more than the amount, since its cost is not known.
    pub is_known: bool,
}

impl EnvelopeUse {
    /// Begins the use of the root of a chain, and pins the manifests of all servers that the root grants whole.
    pub fn begin(chain: &VerifiedChain, registry: &Registry) -> EnvelopeUse {
        let root = &chain.root().authorized_scope.capabilities;
        let whole = root.grants().filter(|grant| grant.is_wildcard());
        let tools = whole.map(|grant| (grant.server().to_owned(), registry.manifest(grant.server())));
        EnvelopeUse {
            content: chain.root_content(),
            expires_at: chain.root().expires_at,
            presenters: BTreeMap::new(),
            tools: tools.collect(),
            spent: BTreeMap::new(),
        }
    }

    /// Checks that a chain has the envelope of this use, and not another one with the same identifiers.
    ///
    /// # Errors
    /// [`DenialReason::ReplayDetected`].
    pub fn check_envelope(&self, chain: &VerifiedChain) -> Result<(), Denial> {
        match chain.root_content() == self.content {
            true => Ok(()),
            false => {
                let detail = "another envelope with this envelope_id and session_id was presented before";
                Err(Denial::new(DenialReason::ReplayDetected, "other_envelope", detail).at_hop(0))
            }
        }
    }

    /// Returns the end of the envelope.
    pub fn expires_at(&self) -> UtcTime {
        self.expires_at
    }

    /// Returns whether a tool is in the manifest that was pinned at the envelope's first use.
    pub fn is_pinned(&self, capability: &Capability) -> bool {
        let tools = self.tools.get(capability.server());
        tools.is_some_and(|tools| tools.iter().any(|tool| tool.as_str() == capability.tool()))
    }

    /// Binds the holder of a chain to its first presenter. Another one may follow if the registry maps both to the
    /// holder.
    ///
    /// # Errors
    /// [`DenialReason::ReplayDetected`].
    pub fn bind(
        &mut self,
        holder: &AgentId,
        presenter: &Presenter,
        registry: &Registry,
    ) -> Result<(), Denial> {
        let first = self.presenters.entry(holder.clone()).or_insert_with(|| presenter.clone());
        match first == presenter || registry.is_presenter(first, holder) {
            true => Ok(()),
            false => {
                let detail = format!("{holder} presented the envelope by another identity before");
                Err(Denial::new(DenialReason::ReplayDetected, "other_presenter", detail))
            }
        }
    }

    /// Reserves the cost of a call on every ledger of its chain; `cost` returns the cost expected in a unit. Of a call
    /// whose cost is not known, no ledger may have reached its ceiling.
    ///
    /// # Errors
    /// [`DenialReason::BudgetExpansionDenied`] with the hop whose budget is spent, or with the code `ledgers` if more than
    /// [`MAX_LEDGERS`] amounts would have to be kept. Nothing is reserved then.
    pub fn reserve(
        &mut self,
        chain: &VerifiedChain,
        cost: impl Fn(&Text) -> ExpectedCost,
    ) -> Result<Spending, Denial> {
        let unit = chain.ledgers().first().map(|ledger| ledger.budget.unit.clone());
        let cost = unit.as_ref().map_or(ExpectedCost::known(Decimal::ZERO), cost);
        chain.ledgers().iter().try_for_each(|ledger| self.check_ceiling(ledger, cost))?;
        self.check_room(chain)?;
        let ledgers = chain.ledgers().iter().map(|ledger| ledger.object).collect();
        let spending = Spending { ledgers, unit, amount: cost.amount, is_known: cost.is_known };
        spending.ledgers.iter().for_each(|ledger| self.add(*ledger, cost.amount));
        Ok(spending)
    }

    /// Checks that a cost fits below the ceiling of a ledger. Reaching it is allowed; if it is reached already, only a
    /// call with the known cost of zero fits.
    fn check_ceiling(&self, ledger: &ChainLedger, cost: ExpectedCost) -> Result<(), Denial> {
        let (spent, Budget { ceiling, unit }) = (self.spent_on(&ledger.object), &ledger.budget);
        let after = spent.saturating_add(cost.amount);
        let detail = if after > *ceiling {
            format!(
                "a cost of {} {unit} would bring the spent amount to {after}, above {ceiling}",
                cost.amount
            )
        } else if spent == *ceiling && !cost.is_known {
            format!("the cost of the call is not known, and all of {ceiling} {unit} is spent")
        } else {
            return Ok(());
        };
        let denial = Denial::new(DenialReason::BudgetExpansionDenied, SPENT, detail);
        Err(denial.at_hop(ledger.hop).on(Dimension::Budget))
    }

    /// Checks that there is room for the amounts of the chain's ledgers, which are kept until the envelope ends.
    fn check_room(&self, chain: &VerifiedChain) -> Result<(), Denial> {
        let new = chain.ledgers().iter().filter(|ledger| !self.spent.contains_key(&ledger.object)).count();
        match new == 0 || self.spent.len() + new <= MAX_LEDGERS {
            true => Ok(()),
            false => {
                let detail =
                    format!("calls under {MAX_LEDGERS} budgets of this envelope are counted already");
                let denial = Denial::new(DenialReason::BudgetExpansionDenied, "ledgers", detail);
                Err(denial.on(Dimension::Budget))
            }
        }
    }

    /// Replaces a reserved amount with the real cost of the call.
    pub fn settle(&mut self, spending: &Spending, cost: Decimal) {
        for ledger in &spending.ledgers {
            let others = self.spent_on(ledger).saturating_sub(spending.amount);
            self.spent.insert(*ledger, others.saturating_add(cost));
        }
    }

    /// Returns the amount spent and reserved on the ledger of an object.
    pub fn spent_on(&self, object: &Sha256Digest) -> Decimal {
        self.spent.get(object).copied().unwrap_or(Decimal::ZERO)
    }

    fn add(&mut self, ledger: Sha256Digest, amount: Decimal) {
        let spent = self.spent_on(&ledger).saturating_add(amount);
        self.spent.insert(ledger, spent);
    }
}
