//! The keys of a gateway for the signatures within its execution receipts: named by the caller, or in the issuer's
//! did:key.

use content_rules::issuer_key;
use registration::Violation;
use registration::aer::{AerRecord, VerifyingKeys};
use scitt::{PublicKey, SignedStatement};

use crate::console::Failure;
use crate::keyfile;

/// Keys that a gateway may have signed with; never empty.
pub struct GatewayKeys(Vec<PublicKey>);

impl GatewayKeys {
    /// Reads the named keys, each a file or a did:key, or else the key in the issuer's did:key. `None` if there is none.
    pub fn find(named: &[String], statement: &SignedStatement) -> Result<Option<Self>, Failure> {
        let keys: Vec<PublicKey> = match named.is_empty() {
            true => issuer_key(statement).into_iter().collect(),
            false => named.iter().map(|key| keyfile::read_public(key)).collect::<Result<_, _>>()?,
        };
        Ok((!keys.is_empty()).then_some(GatewayKeys(keys)))
    }

    /// Verifies the rules of an execution receipt, the signatures within it, and its statement's. `content` is a detached
    /// payload or a disclosed receipt. If `issuer` is `None`, the key in the issuer's did:key signed the statement, or else
    /// the gateway's key with its `kid`, or else the gateway's first key.
    pub fn verify(
        &self,
        statement: &SignedStatement,
        content: Option<&[u8]>,
        issuer: Option<PublicKey>,
    ) -> Result<AerRecord, Violation> {
        let issuer =
            issuer.or_else(|| issuer_key(statement)).unwrap_or_else(|| self.named_by(statement).clone());
        AerRecord::verify(statement, content, VerifyingKeys { gateway: &self.0, issuer: &issuer })
    }

    fn named_by(&self, statement: &SignedStatement) -> &PublicKey {
        let kid = statement.header().kid().map(|kid| kid.as_ref()).unwrap_or_default();
        self.0.iter().find(|key| key.thumbprint() == kid).unwrap_or(&self.0[0])
    }
}
