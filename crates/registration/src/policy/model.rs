//! What a policy says, once all of it is known to be sound.

use scitt::header::{ContentType, Label};
use scitt::x509::RootCertificate;
use scitt::{Algorithm, PublicKey};

use super::condition::Condition;
use super::profile::Profile;
use crate::operator::Required;

/// Everything a policy decides with.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The log's `iss`: who its receipts and policies come from.
    pub iss: String,
    /// The log's origin: its name in checkpoints, and the `sub` of its policies.
    pub origin: String,
    /// 0 for entry 0; each later policy of the log adds one.
    pub revision: u64,
    /// Who signs policies, erasures and other statements of the operator.
    pub operators: Vec<BoundKey>,
    /// How many of them must agree to what cannot be undone.
    pub required: Required,
    /// Issuers known by key.
    pub issuers: Vec<Issuer>,
    /// Which `did:key` issuers may sign for themselves.
    pub did_key: SelfCertified,
    /// Which `did:jwk` issuers may sign for themselves.
    pub did_jwk: SelfCertified,
    /// Roots up to which certificates are followed.
    pub anchors: Vec<Anchor>,
    /// What is admitted, by content type. Anything else is refused.
    pub types: Vec<TypeRule>,
}

/// A key and the name statements call it by.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundKey {
    /// The kid, as in the protected header.
    pub kid: Vec<u8>,
    /// The key.
    pub key: PublicKey,
}

/// An issuer and the keys that speak for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// The `iss`.
    pub iss: String,
    /// Its keys.
    pub keys: Vec<BoundKey>,
}

/// Issuers whose name is their key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelfCertified {
    /// Anyone.
    Open,
    /// These.
    Listed(Vec<String>),
}

impl SelfCertified {
    /// Whether this issuer may sign.
    pub fn admits(&self, iss: &str) -> bool {
        match self {
            SelfCertified::Open => true,
            SelfCertified::Listed(names) => names.iter().any(|name| name == iss),
        }
    }
}

/// Roots of certificates, and which issuers they may vouch for.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// What the operator calls it.
    pub name: String,
    /// Root certificates.
    pub roots: Vec<RootCertificate>,
    /// Whether `iss` may be a subject alternative name of the certificate, or a did:x509 it satisfies.
    pub san: bool,
    /// Issuers that any certificate under these roots may speak for.
    pub issuers: Vec<Pattern>,
    /// The extended key usage (a dotted OID) that the certificate must have, if any.
    pub eku: Option<String>,
}

/// One content type and its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeRule {
    /// The rule's name: an entry says it was admitted by it.
    pub name: String,
    /// The content type.
    pub content_type: ContentType,
    /// How much of the payload is understood.
    pub profile: Profile,
    /// Whose statements; empty for any issuer that can be authenticated.
    pub issuers: Vec<Pattern>,
    /// Signed how, under either identifier (ES256 and ESP256 are one); empty for every algorithm the service speaks.
    pub algorithms: Vec<Algorithm>,
    /// Bytes of the statement, and of a detached payload.
    pub max_size: u64,
    /// Whether the payload may come beside the statement.
    pub detached: bool,
    /// Whether a statement may hold the payload's hash instead (RFC 9995).
    pub hash_envelope: bool,
    /// CWT claims that must be there besides `iss` and `sub`.
    pub claims: Vec<Claim>,
    /// Labels that the protected header must have besides.
    pub headers: Vec<Label>,
    /// Conditions asked in order, when everything else holds.
    pub conditions: Vec<Condition>,
    /// Whether a payload that came beside the statement is kept with the entry.
    pub keep_payload: bool,
    /// How long the bytes are kept after they were registered, in seconds; `None` for ever.
    pub retention: Option<u64>,
}

/// A CWT claim that a policy may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// Issued at.
    Iat,
    /// Expires.
    Exp,
    /// Not before.
    Nbf,
}

impl Claim {
    /// Every claim, by the name RFC 8392 gives it.
    pub const ALL: [(Claim, &'static str); 3] =
        [(Claim::Iat, "iat"), (Claim::Exp, "exp"), (Claim::Nbf, "nbf")];

    /// The claim's name.
    pub fn name(self) -> &'static str {
        match self {
            Claim::Iat => "iat",
            Claim::Exp => "exp",
            Claim::Nbf => "nbf",
        }
    }
}

/// A name in which `*` stands for any run of characters. Nothing else is special.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Pattern(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `name` fits. Linear in the name for each `*`-free part.
    pub fn fits(&self, name: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(mut name) = name.strip_prefix(head) else { return false };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            let Some((_, after)) = name.split_once(part) else { return false };
            name = after;
        }
        name.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters_and_nothing_else_is_special() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("did:key:*", "did:key:z6Mk", true),
            ("did:key:*", "did:web:x", false),
            ("https://*.example", "https://a.b.example", true),
            ("https://*.example", "https://example", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("a?c", "abc", false),
            ("a?c", "a?c", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("**", "x", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(Pattern::new(pattern).fits(name), fits, "{pattern} {name}");
        }
    }
}
