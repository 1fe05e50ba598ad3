//! The issuer of all statements, and the policy that admits them.

use anyhow::{Context, ensure};
use scitt::{PublicKey, SigningKey};

/// Seed of the issuer's key, which is public: only a log that measures may admit it.
const SEED: [u8; 32] = [9; 32];
/// Issuer (`iss`) of statements whose issuer is not a did:key.
pub(crate) const ISS: &str = "https://bench.example";
/// Key identifier (`kid`) of its key.
pub(crate) const KID: &str = "bench";
/// Registry that the issuer operates.
pub(crate) const REGISTRY: &str = "registry.bench.example";

/// The key that signs all statements.
pub(crate) struct Issuer {
    /// The signing key.
    pub(crate) key: SigningKey,
    /// Its did:key, the issuer where a content type requires one.
    pub(crate) did: String,
}

impl Issuer {
    /// Returns the issuer, always the same one.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let key = SigningKey::from_ed25519_seed(&SEED).context("the seed is not a key")?;
        let did = scitt::Signer::public_key(&key).did_key();
        Ok(Self { key, did })
    }

    /// Returns the public key.
    pub(crate) fn public_key(&self) -> &PublicKey {
        scitt::Signer::public_key(&self.key)
    }
}

/// Adds the issuer to the policy that `tabellion init` writes, in which every listed issuer may register any content
/// type.
///
/// # Errors
/// If the policy is not one of `init`.
pub(crate) fn admit_issuer(policy: &str) -> anyhow::Result<String> {
    let did = Issuer::new()?.did;
    let keys = format!("keys = [{{ key = \"{did}\", kid = \"{KID}\" }}]");
    let changes = [
        ("[did]\nkey = []", "[did]\nkey = \"open\"".to_owned()),
        ("require_signature = true", "require_signature = false".to_owned()),
        ("verifier = []", format!("verifier = [{{ id = \"{ISS}\", {keys} }}]")),
        (
            "registry = []",
            format!("registry = [{{ id = \"{REGISTRY}\", iss = \"{ISS}\", keys = [\"{did}\"] }}]"),
        ),
    ];
    let mut admitting = policy.to_owned();
    for (before, after) in changes {
        ensure!(admitting.contains(before), "the first policy of a log has no line `{before}`");
        admitting = admitting.replacen(before, &after, 1);
    }
    Ok(format!("{admitting}\n[[issuer]]\niss = \"{ISS}\"\n{keys}\n"))
}
