//! Scopes and how they narrow from hop to hop (section 4.3; ).
//!
//! A hop can only narrow the scope of the hop before it, on every dimension. What a hop leaves out is inherited, so the
//! scope in effect is the meet over all hops so far: the smallest budget, price class, classification and depth, the
//! largest SLO class, and the capabilities of the last hop, which are within those of all others.

use decimal::Decimal;

use crate::capability::Capabilities;
use crate::denial::{Denial, DenialReason, Dimension};
use crate::text::Text;

/// A budget with its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The highest amount that may be spent.
    pub ceiling: Decimal,
    /// The unit of the amount.
    pub unit: Text,
}

/// The scope that an envelope or an attestation declares.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredScope {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// The number of further delegations.
    pub max_delegation_depth: Option<u32>,
    /// The budget. A unit without an amount declares nothing.
    pub budget: Option<Budget>,
    /// The highest price class.
    pub price_class: Option<u32>,
    /// The lowest class of service level.
    pub slo_class: Option<u32>,
    /// The highest classification of data.
    pub classification: Option<Text>,
}

/// The scope in effect at a hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// The number of further delegations.
    pub depth: u32,
    /// The smallest budget of all hops so far.
    pub budget: Option<Budget>,
    /// The lowest price class of all hops so far.
    pub price_class: Option<u32>,
    /// The highest class of service level of all hops so far.
    pub slo_class: Option<u32>,
    /// The lowest classification of all hops so far.
    pub classification: Option<Text>,
}

/// Classifications of data from the lowest to the highest, as the operator of the registry orders them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifications(pub Vec<Text>);

impl Classifications {
    /// Returns the rank of a classification; `None` if the operator does not know it.
    pub fn rank(&self, label: &str) -> Option<usize> {
        self.0.iter().position(|known| known.as_str() == label)
    }

    fn known(&self, label: &Text) -> Result<usize, Denial> {
        self.rank(label.as_str()).ok_or_else(|| {
            let detail = format!("the registry does not order the classification {label}");
            Denial::new(DenialReason::ScopeExpansionViolation, "classification", detail)
                .on(Dimension::Classification)
        })
    }
}

impl Scope {
    /// Returns the scope of a root envelope.
    ///
    /// # Errors
    /// [`Denial`] if its classification is unknown.
    pub fn of_root(declared: &DeclaredScope, order: &Classifications) -> Result<Scope, Denial> {
        declared.classification.as_ref().map(|label| order.known(label)).transpose()?;
        Ok(Scope {
            capabilities: declared.capabilities.clone(),
            depth: declared.max_delegation_depth.unwrap_or(0),
            budget: declared.budget.clone(),
            price_class: declared.price_class,
            slo_class: declared.slo_class,
            classification: declared.classification.clone(),
        })
    }

    /// Returns the scope that is left after a delegation.
    ///
    /// # Errors
    /// [`Denial`] with the first dimension on which the delegation declares more than there is.
    pub fn narrowed(&self, declared: &DeclaredScope, order: &Classifications) -> Result<Scope, Denial> {
        Ok(Scope {
            depth: self.narrowed_depth(declared.max_delegation_depth)?,
            capabilities: self.narrowed_capabilities(&declared.capabilities)?,
            classification: self.narrowed_classification(declared.classification.as_ref(), order)?,
            budget: self.narrowed_budget(declared.budget.as_ref())?,
            price_class: self.narrowed_price(declared.price_class)?,
            slo_class: self.narrowed_slo(declared.slo_class)?,
        })
    }

    /// a declared depth is below the remaining one, and an omitted depth is one less.
    fn narrowed_depth(&self, declared: Option<u32>) -> Result<u32, Denial> {
        let deny = |detail: String| {
            Denial::new(DenialReason::ChainIntegrityViolation, "depth", detail).on(Dimension::Depth)
        };
        let left =
            self.depth.checked_sub(1).ok_or_else(|| deny("no further delegation is permitted".into()))?;
        match declared {
            Some(depth) if depth > left => {
                Err(deny(format!("max_delegation_depth {depth} is not below {}", self.depth)))
            }
            declared => Ok(declared.unwrap_or(left)),
        }
    }

    fn narrowed_capabilities(&self, declared: &Capabilities) -> Result<Capabilities, Denial> {
        match self.capabilities.first_beyond(declared) {
            None => Ok(declared.clone()),
            Some(grant) => {
                let detail = format!("{grant} is not within the capabilities before it");
                Err(Denial::new(DenialReason::ScopeExpansionViolation, "capabilities", detail)
                    .on(Dimension::Capabilities))
            }
        }
    }

    fn narrowed_classification(
        &self,
        declared: Option<&Text>,
        order: &Classifications,
    ) -> Result<Option<Text>, Denial> {
        let Some(declared) = declared else { return Ok(self.classification.clone()) };
        let rank = order.known(declared)?;
        let ceiling = self.classification.as_ref().map(|label| order.known(label)).transpose()?;
        if ceiling.is_some_and(|ceiling| rank > ceiling) {
            let detail = format!("the classification {declared} is above the ceiling");
            return Err(Denial::new(DenialReason::ScopeExpansionViolation, "classification", detail)
                .on(Dimension::Classification));
        }
        Ok(Some(declared.clone()))
    }

    fn narrowed_budget(&self, declared: Option<&Budget>) -> Result<Option<Budget>, Denial> {
        let deny = |code, detail: String| {
            Denial::new(DenialReason::BudgetExpansionDenied, code, detail).on(Dimension::Budget)
        };
        match (&self.budget, declared) {
            (before, None) => Ok(before.clone()),
            (None, Some(declared)) => Ok(Some(declared.clone())),
            (Some(before), Some(declared)) if before.unit != declared.unit => {
                Err(deny("unit", format!("a budget in {} under one in {}", declared.unit, before.unit)))
            }
            (Some(before), Some(declared)) if declared.ceiling > before.ceiling => Err(deny(
                "ceiling",
                format!("{} is above the ceiling of {}", declared.ceiling, before.ceiling),
            )),
            (Some(_), Some(declared)) => Ok(Some(declared.clone())),
        }
    }

    fn narrowed_price(&self, declared: Option<u32>) -> Result<Option<u32>, Denial> {
        match (self.price_class, declared) {
            (Some(before), Some(class)) if class > before => {
                let detail = format!("price class {class} is above {before}");
                Err(Denial::new(DenialReason::BudgetExpansionDenied, "price", detail).on(Dimension::Price))
            }
            (before, declared) => Ok(declared.or(before)),
        }
    }

    fn narrowed_slo(&self, declared: Option<u32>) -> Result<Option<u32>, Denial> {
        match (self.slo_class, declared) {
            (Some(before), Some(class)) if class < before => {
                let detail = format!("SLO class {class} is below {before}");
                Err(Denial::new(DenialReason::SloRelaxationDenied, "slo", detail).on(Dimension::Slo))
            }
            (before, declared) => Ok(declared.or(before)),
        }
    }
}
