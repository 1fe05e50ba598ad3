//! Demands of a statement's rules on its permit: what must hold when the log commits the entry.

use merkle::EntryDigest;
use serde_json::{Map, Value};

use crate::guard::Guard;
use crate::time_window::Bound;

/// The conditions on a permit that the rules of a profile or of an operator's statement return.
#[derive(Debug, Default)]
pub(crate) struct PermitDemands {
    /// The rules about time.
    pub bounds: Vec<Bound>,
    /// The claims that no other entry may make.
    pub guards: Vec<Guard>,
    /// The statements that the decision assumed to be absent from the log.
    pub relied_absent: Vec<EntryDigest>,
    /// The claims that the decision assumed to be made by no entry.
    pub relied_free: Vec<Guard>,
    /// Facts found during the decision.
    pub learned: Map<String, Value>,
}

impl PermitDemands {
    /// Demands guards alone.
    pub fn guards(guards: impl IntoIterator<Item = Guard>) -> PermitDemands {
        PermitDemands { guards: guards.into_iter().collect(), ..PermitDemands::default() }
    }

    /// States a fact alone.
    pub fn fact(name: &str, value: Value) -> PermitDemands {
        PermitDemands { learned: Map::from_iter([(name.to_owned(), value)]), ..PermitDemands::default() }
    }
}
