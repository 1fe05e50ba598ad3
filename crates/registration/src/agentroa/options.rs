//! Policy options for registry versions, `[type.agentroa_registry]`, and the decision under them.

use jose::members::quote;
use roa::registry::Registry;
use scitt::{Curve, PublicKey};
use serde_json::{Value, json};

use super::{RegistryRecord, RegistryRule};
use crate::authenticated::Authenticated;
use crate::bound_key::public_key;
use crate::demands::PermitDemands;
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::section::{Section, list, name, unique};
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

/// Policy options for registry versions. By default no registry is listed, and none is admitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegistryOptions {
    /// The registries whose versions are admitted.
    pub registries: Vec<RegistryEntry>,
}

/// A registry with the keys of its operators.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryEntry {
    /// The `registry_id`.
    pub id: String,
    /// The `iss` of its statements.
    pub iss: String,
    /// The Ed25519 keys of its operators.
    pub keys: Vec<PublicKey>,
}

impl RegistryOptions {
    /// Parses the policy's table `[type.agentroa_registry]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let registries = section.tables("registry", RegistryEntry::read);
        let notes = section.notes();
        unique(&section.path("registry"), registries.iter().map(|entry| entry.id.as_str()), "id", notes);
        RegistryOptions { registries }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        json!({ "registry": list(&self.registries, RegistryEntry::document) })
    }

    /// Checks a version against the options, and returns its demands.
    pub(super) fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &RegistryRecord,
    ) -> Result<PermitDemands, Violation> {
        let document = record.signed.document();
        let id = document.registry_id.as_str();
        let listed = self.registries.iter().find(|entry| entry.id == id && entry.iss == statement.iss());
        let entry = listed.ok_or_else(|| {
            let detail = format!("the policy lists no registry {} of {}", quote(id), quote(statement.iss()));
            RegistryRule::Registry.in_payload("/registry_id", detail)
        })?;
        Registry::open(&record.signed, &entry.keys)
            .map_err(|error| RegistryRule::Signature.in_payload("/signatures", error.to_string()))?;
        let issued_at = u64::try_from(document.issued_at.unix_seconds())
            .map_err(|_| RegistryRule::IssuedAtFuture.in_payload("/issued_at", "a time before 1970"))?;
        let not_ahead = Bound {
            rule: RuleName::fixed(RegistryRule::IssuedAtFuture.name()),
            place: Place::payload("/issued_at"),
            window: TimeWindow::from(issued_at.saturating_sub(CLOCK_SKEW)),
        };
        let (epoch, sequence) = (document.epoch.to_be_bytes(), document.sequence.to_be_bytes());
        let guards = vec![Guard::new(GuardKind::RegistryVersion, &[id.as_bytes(), &epoch, &sequence])];
        Ok(PermitDemands { bounds: vec![not_ahead], guards, ..PermitDemands::default() })
    }
}

impl RegistryEntry {
    fn read(mut section: Section<'_>) -> Option<RegistryEntry> {
        let id = section.required("id", name);
        let iss = section.required("iss", name);
        let keys = section.values("keys", ed25519);
        if section.is_empty_list("keys") {
            section.note("keys", "a registry needs the key of an operator");
        }
        section.close();
        Some(RegistryEntry { id: id?, iss: iss?, keys })
    }

    fn document(&self) -> Value {
        json!({ "id": self.id, "iss": self.iss, "keys": list(&self.keys, |key| key.did_key().into()) })
    }
}

fn ed25519(value: &Value) -> Result<PublicKey, String> {
    let key = public_key(value)?.key;
    match key.curve() {
        Curve::Ed25519 => Ok(key),
        other => Err(format!("registries are signed with Ed25519 keys, this one is of {other}")),
    }
}
