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
use crate::text::{AgentId, Sha256Digest, Text, UtcTime};
use crate::verify::VerifiedChain;

/// The use of a root envelope and of the chains below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeUse {
    /// The end of the envelope; the use can be forgotten then.
    expires_at: UtcTime,
    /// The first presenter of each holder.
    presenters: BTreeMap<AgentId, Presenter>,
    /// The tools of each server for which a chain had a wildcard at the envelope's first use.
    tools: BTreeMap<String, BTreeSet<Text>>,
    /// The amount spent on each ledger, by the digest of the object that declares the budget, without its signatures.
    spent: BTreeMap<Sha256Digest, Decimal>,
}

/// The amounts that one call reserves: the same on each ledger of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    ledgers: Vec<Sha256Digest>,
    /// The unit of all budgets of the chain; `None` if no hop declares one.
    pub unit: Option<Text>,
    /// The amount.
    pub amount: Decimal,
}

impl EnvelopeUse {
    /// Begins the use of the root of a chain, and pins the manifests of all servers that the root grants whole.
    pub fn begin(chain: &VerifiedChain, registry: &Registry) -> EnvelopeUse {
        let root = &chain.root().authorized_scope.capabilities;
        let whole = root.grants().filter(|grant| grant.is_wildcard());
        let tools = whole.map(|grant| (grant.server().to_owned(), registry.manifest(grant.server())));
        EnvelopeUse {
            expires_at: chain.root().expires_at,
            presenters: BTreeMap::new(),
            tools: tools.collect(),
            spent: BTreeMap::new(),
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

    /// Reserves the cost of a call on every ledger of its chain; `cost` is the highest cost expected in a unit.
    ///
    /// # Errors
    /// [`DenialReason::BudgetExpansionDenied`] with the hop whose budget is spent, or with the code `ledgers` if more than
    /// [`MAX_LEDGERS`] amounts would have to be kept. Nothing is reserved then.
    pub fn reserve(
        &mut self,
        chain: &VerifiedChain,
        cost: impl Fn(&Text) -> Decimal,
    ) -> Result<Spending, Denial> {
        let unit = chain.ledgers().first().map(|ledger| ledger.budget.unit.clone());
        let amount = unit.as_ref().map_or(Decimal::ZERO, cost);
        for ledger in chain.ledgers() {
            let after = self.spent_on(&ledger.object).saturating_add(amount);
            if after > ledger.budget.ceiling {
                let detail = format!(
                    "a cost of {amount} {} would bring the spent amount to {after}, above {}",
                    ledger.budget.unit, ledger.budget.ceiling
                );
                return Err(Denial::new(DenialReason::BudgetExpansionDenied, SPENT, detail)
                    .at_hop(ledger.hop)
                    .on(Dimension::Budget));
            }
        }
        self.check_room(chain)?;
        let spending =
            Spending { ledgers: chain.ledgers().iter().map(|ledger| ledger.object).collect(), unit, amount };
        spending.ledgers.iter().for_each(|ledger| self.add(*ledger, amount));
        Ok(spending)
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
