//! Objects with signatures of their own, over their canonical form without `signatures` (section 4.4; ).
//!
//! An object is read once, strictly, and keeps its canonical form: digests and signatures are always over what was
//! received, never over what this crate would write.

use data_encoding::BASE64URL_NOPAD;
use jose::json::{self, JsonError, JsonErrorKind, Limits};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use scitt::{Algorithm, Curve, PublicKey, SignError, Signer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::limits::MAX_SIGNATURES;
use crate::text::{NotOfForm, Sha256Digest, Text};

/// The member with the signatures.
pub(crate) const SIGNATURES: &str = "signatures";

/// The only algorithm, by its name in the draft.
pub(crate) const ED_DSA: &str = "EdDSA";

/// An object of the protocol that is signed.
pub trait Document: Serialize + DeserializeOwned {
    /// Limits on the JSON text of the object.
    const LIMITS: Limits;

    /// The signatures of the object.
    fn signatures(&self) -> &Signatures;

    /// Checks the rules that concern several members.
    ///
    /// # Errors
    /// [`BrokenMemberRule`] with the JSON pointer of the member at fault.
    fn check(&self) -> Result<(), BrokenMemberRule>;
}

/// A rule about several members of an object that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenMemberRule {
    /// The JSON pointer of the member at fault.
    pub pointer: &'static str,
    /// The rule.
    pub rule: &'static str,
}

/// An object with its canonical form. Its signatures have the right form; they are not verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed<D> {
    document: D,
    /// The digest of the canonical form of the complete object.
    digest: Sha256Digest,
    /// The canonical form of the complete object.
    canonical: Vec<u8>,
    /// The canonical form without `signatures`.
    content: Vec<u8>,
}

impl<D: Document> Signed<D> {
    /// Parses an object from strict JSON.
    ///
    /// # Errors
    /// [`JsonError`] with the position of the first member that is missing, unknown, null or of another form, or of a
    /// number that its canonical form would change.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        let checked = json::check(text, D::LIMITS)?;
        if let Some(offset) = checked.first_inexact_number() {
            return Err(JsonError { pointer: String::new(), offset, kind: JsonErrorKind::Ambiguous });
        }
        let document: D = checked.read()?;
        document.check().map_err(|broken| JsonError {
            pointer: broken.pointer.to_owned(),
            offset: 0,
            kind: JsonErrorKind::Shape(broken.rule.to_owned()),
        })?;
        let object = checked.value()?;
        let canonical = jose::jcs::canonical(&object);
        Ok(Signed { document, digest: Sha256Digest::of(&canonical), canonical, content: content(object) })
    }

    /// Signs an object with keys by the names of their signers. Signatures that it has already are replaced.
    ///
    /// # Errors
    /// [`SigningError`] if the object would be malformed, or a key cannot sign it.
    pub fn sign(object: &impl Serialize, signers: &[(&str, &dyn Signer)]) -> Result<Self, SigningError> {
        let mut members = serde_json::to_value(object)?;
        let content = content(members.clone());
        let mut signatures = Vec::new();
        for (name, signer) in signers {
            signatures.push(object_signature(name, &content, *signer)?);
        }
        if let Value::Object(members) = &mut members {
            members.insert(SIGNATURES.to_owned(), signatures.into());
        }
        Ok(Signed::parse(&jose::jcs::canonical(&members))?)
    }

    /// Returns the parsed object.
    pub fn document(&self) -> &D {
        &self.document
    }

    /// Returns the canonical form of the complete object.
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Returns the digest of the complete object.
    pub fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// Returns the digest of the object without its signatures, which others may repeat or add to.
    pub fn content_digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.content)
    }

    /// Returns whether this signature of the object is by a key. Weak keys and malleable signatures are refused.
    pub fn is_by(&self, signature: &ObjectSignature, key: &PublicKey) -> bool {
        signature.is_by(key, &self.content)
    }
}

/// The error of [`Signed::sign`].
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The object breaks a rule.
    #[error("the object is malformed: {0}")]
    Malformed(#[from] JsonError),
    /// The key is not an Ed25519 key.
    #[error("an object of AgentROA is signed with an Ed25519 key, not with one of {0}")]
    Curve(Curve),
    /// The object has no JSON form.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Signing failed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// Signs the content of an object. Returns the element for the member `signatures`.
pub(crate) fn object_signature(
    name: &str,
    content: &[u8],
    signer: &dyn Signer,
) -> Result<Value, SigningError> {
    match signer.public_key().curve() {
        Curve::Ed25519 => {
            let bytes = BASE64URL_NOPAD.encode(&signer.sign(content)?);
            Ok(json!({ "signer": name, "alg": ED_DSA, "sig": bytes }))
        }
        other => Err(SigningError::Curve(other)),
    }
}

/// Returns the content that the signatures sign.
pub(crate) fn content(mut object: Value) -> Vec<u8> {
    if let Value::Object(members) = &mut object {
        members.remove(SIGNATURES);
    }
    jose::jcs::canonical(&object)
}

/// The signatures of an object: 1 to [`MAX_SIGNATURES`], or none before it is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ObjectSignature>", into = "Vec<ObjectSignature>")]
pub struct Signatures(Vec<ObjectSignature>);

impl Signatures {
    /// Returns the signatures in order.
    pub fn iter(&self) -> impl Iterator<Item = &ObjectSignature> {
        self.0.iter()
    }

    /// Returns the names of the signers in order.
    pub fn signers(&self) -> Vec<String> {
        self.iter().map(|signature| signature.signer.to_string()).collect()
    }
}

impl TryFrom<Vec<ObjectSignature>> for Signatures {
    type Error = NotOfForm;

    fn try_from(signatures: Vec<ObjectSignature>) -> Result<Self, NotOfForm> {
        let fits = (1..=MAX_SIGNATURES).contains(&signatures.len());
        fits.then_some(Signatures(signatures)).ok_or(NotOfForm("1 to 16 signatures"))
    }
}

impl From<Signatures> for Vec<ObjectSignature> {
    fn from(signatures: Signatures) -> Vec<ObjectSignature> {
        signatures.0
    }
}

impl JsonSchema for Signatures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Signatures".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<ObjectSignature>();
        json_schema!({ "type": "array", "minItems": 1, "maxItems": MAX_SIGNATURES, "items": items })
    }
}

/// A signature with the name of its signer (section 4.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectSignature {
    /// The name of the signing key in the registry.
    pub signer: Text,
    /// The algorithm: always `EdDSA`, with an Ed25519 key.
    alg: EdDsa,
    /// The signature: 64 bytes in base64url without padding.
    sig: SignatureBytes,
}

impl ObjectSignature {
    /// Joins a signature to the name of its signer.
    pub fn new(signer: Text, signature: [u8; 64]) -> ObjectSignature {
        ObjectSignature { signer, alg: EdDsa::EdDsa, sig: SignatureBytes(signature) }
    }

    /// Returns whether the signature of some content is by an Ed25519 key. Weak keys and malleable signatures are
    /// refused.
    pub fn is_by(&self, key: &PublicKey, content: &[u8]) -> bool {
        key.verify(Algorithm::EdDsa, content, &self.sig.0).is_ok()
    }
}

/// The value of `alg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum EdDsa {
    #[serde(rename = "EdDSA")]
    EdDsa,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SignatureBytes([u8; 64]);

impl<'de> Deserialize<'de> for SignatureBytes {
    fn deserialize<R: Deserializer<'de>>(deserializer: R) -> Result<Self, R::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        let needed = "needed: 64 bytes in base64url without padding or prefix";
        bytes.map(SignatureBytes).ok_or_else(|| serde::de::Error::custom(needed))
    }
}

impl Serialize for SignatureBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

impl JsonSchema for SignatureBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Signature".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{86}$" })
    }
}

/// Deserializes an optional member that is present. JSON `null` is refused: an absent value is left out.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
