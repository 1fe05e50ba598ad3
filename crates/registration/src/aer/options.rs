//! Policy options for execution receipts, `[type.aer]`.

use scitt::{Curve, PublicKey};
use serde_json::{Value, json};

use crate::bound_key::public_key;
use crate::section::{Section, list, name, switch, unique};

/// Policy options for execution receipts. The defaults are the strictest values: no gateway is listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AerOptions {
    /// The gateways whose receipts are admitted.
    pub gateways: Vec<GatewayEntry>,
    /// True to admit an issuer that is a `did:key` as the gateway of that name, with that key.
    pub did_key_gateways: bool,
    /// True to admit permits in degraded operation. Denials are always admitted, because they fail closed.
    pub allow_degraded: bool,
    /// True to require `degraded_reason` of degraded decisions, permits and denials.
    pub require_degraded_reason: bool,
}

/// An instance of a gateway, with the keys that sign its receipts.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayEntry {
    /// The `iss` of its statements.
    pub iss: String,
    /// The `gateway_id` in its receipts.
    pub id: String,
    /// The instance's keys. Several may have the same name, so that a key can be replaced.
    pub keys: Vec<GatewayKey>,
}

/// An Ed25519 key, with its name in a receipt's `signatures`.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayKey {
    /// The value of `signer`.
    pub signer: String,
    /// The public key.
    pub key: PublicKey,
}

impl AerOptions {
    /// Parses the policy's table `[type.aer]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let gateways = section.tables("gateway", GatewayEntry::read);
        let notes = section.notes();
        let instances = gateways.iter().map(|gateway| (gateway.iss.as_str(), gateway.id.as_str()));
        unique(&section.path("gateway"), instances, "id", notes);
        AerOptions {
            gateways,
            did_key_gateways: section.optional("did_key_gateways", switch).unwrap_or(false),
            allow_degraded: section.optional("allow_degraded", switch).unwrap_or(false),
            require_degraded_reason: section.optional("require_degraded_reason", switch).unwrap_or(false),
        }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        json!({
            "gateway": list(&self.gateways, GatewayEntry::document),
            "did_key_gateways": self.did_key_gateways,
            "allow_degraded": self.allow_degraded,
            "require_degraded_reason": self.require_degraded_reason,
        })
    }
}

impl GatewayEntry {
    fn read(mut section: Section<'_>) -> Option<GatewayEntry> {
        let iss = section.required("iss", name);
        let id = section.optional("id", name).or_else(|| iss.clone());
        let signer = id.clone().unwrap_or_default();
        let notes = section.notes();
        let keys = section.list("keys", |value, at| match value {
            Value::String(_) => {
                let key = ed25519(value).map_err(|problem| notes.note(at, problem)).ok()?;
                Some(GatewayKey { signer: signer.clone(), key })
            }
            _ => GatewayKey::read(Section::open(value, at, notes)?, &signer),
        });
        if section.is_empty_list("keys") {
            section.note("keys", "a gateway needs a key");
        }
        // A signer may have several keys: the old and the new one during a key rotation.
        let named = keys.iter().map(|key| (key.signer.as_str(), key.key.thumbprint()));
        unique(&section.path("keys"), named, "key", notes);
        section.close();
        Some(GatewayEntry { iss: iss?, id: id?, keys })
    }

    fn document(&self) -> Value {
        let key = |key: &GatewayKey| json!({ "key": key.key.did_key(), "signer": key.signer });
        json!({ "iss": self.iss, "id": self.id, "keys": list(&self.keys, key) })
    }
}

impl GatewayKey {
    fn read(mut section: Section<'_>, gateway: &str) -> Option<GatewayKey> {
        let key = section.required("key", ed25519);
        let signer = section.optional("signer", name);
        section.close();
        Some(GatewayKey { signer: signer.unwrap_or_else(|| gateway.to_owned()), key: key? })
    }
}

fn ed25519(value: &Value) -> Result<PublicKey, String> {
    let key = public_key(value)?.key;
    match key.curve() {
        Curve::Ed25519 => Ok(key),
        other => Err(format!("receipts are signed with Ed25519 keys, this one is of {other}")),
    }
}
