//! The forms in which values are taken as search values.

use std::borrow::Cow;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jose::jcs;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use crate::node::{Node, Scalar};

/// The prefix of a digest.
const SHA_256: &str = "sha256:";

/// The form of a search value. A value that does not have the form is not a search value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ValueForm {
    /// A text as it is, an integer in decimal digits, or `b64u:` and the base64url of a byte string.
    #[default]
    Text,
    /// A byte string in lower-case hexadecimal.
    Hex,
    /// A digest that stands there: 32 bytes, or their lower-case hexadecimal with or without `sha256:`.
    Digest,
    /// The digest of a text's UTF-8, or of a byte string; of another value, [`JsonDigest`](Self::JsonDigest).
    ContentDigest,
    /// The digest of the canonical JSON (RFC 8785).
    JsonDigest,
    /// The digest of a public key's required members (RFC 7638), for the key types `EC` and `OKP`.
    JwkThumbprint,
    /// The members of these names as an array in canonical JSON. All of them must be text.
    JsonArray(Vec<String>),
}

impl ValueForm {
    /// Returns the search value.
    pub fn value<'v>(&self, node: Node<'v>) -> Option<Cow<'v, str>> {
        match self {
            ValueForm::Text => node.scalar().map(text),
            ValueForm::Hex => match node.scalar()? {
                Scalar::Bytes(bytes) => Some(HEXLOWER.encode(bytes).into()),
                Scalar::Text(_) | Scalar::Integer(_) => None,
            },
            ValueForm::Digest => digest(node.scalar()?),
            ValueForm::ContentDigest => match node.scalar() {
                Some(Scalar::Text(text)) => Some(digest_of(text.as_bytes())),
                Some(Scalar::Bytes(bytes)) => Some(digest_of(bytes)),
                Some(Scalar::Integer(_)) | None => json_digest(node),
            },
            ValueForm::JsonDigest => json_digest(node),
            ValueForm::JwkThumbprint => thumbprint(node),
            ValueForm::JsonArray(names) => array(node, names),
        }
    }
}

/// Formats the SHA-256 digest of bytes.
pub(crate) fn digest_of<'v>(content: &[u8]) -> Cow<'v, str> {
    format_digest(&Sha256::digest(content))
}

/// Formats a SHA-256 digest: `sha256:` and hexadecimal digits.
pub(crate) fn format_digest<'v>(digest: &[u8]) -> Cow<'v, str> {
    let mut text = String::with_capacity(SHA_256.len() + 2 * digest.len());
    text.push_str(SHA_256);
    HEXLOWER.encode_append(digest, &mut text);
    text.into()
}

fn text(scalar: Scalar<'_>) -> Cow<'_, str> {
    match scalar {
        Scalar::Text(text) => text.into(),
        Scalar::Integer(number) => number.to_string().into(),
        Scalar::Bytes(bytes) => format!("b64u:{}", BASE64URL_NOPAD.encode(bytes)).into(),
    }
}

fn digest(scalar: Scalar<'_>) -> Option<Cow<'_, str>> {
    match scalar {
        Scalar::Bytes(bytes) => (bytes.len() == 32).then(|| format_digest(bytes)),
        Scalar::Text(text) => {
            let hex = text.strip_prefix(SHA_256).unwrap_or(text);
            let is_digest =
                hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_digest
                .then(|| if hex.len() == text.len() { format!("{SHA_256}{hex}").into() } else { text.into() })
        }
        Scalar::Integer(_) => None,
    }
}

fn json_digest<'v>(node: Node<'_>) -> Option<Cow<'v, str>> {
    Some(digest_of(&jcs::canonical(&*node.exact_json()?)))
}

fn thumbprint<'v>(key: Node<'_>) -> Option<Cow<'v, str>> {
    let names: &[&str] = match key.member("kty")?.text()? {
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        _ => return None,
    };
    let member = |name: &&str| Some(((*name).to_owned(), Json::from(key.member(name)?.text()?)));
    let required: Map<_, _> = names.iter().map(member).collect::<Option<_>>()?;
    Some(digest_of(&jcs::canonical(&required.into())))
}

fn array<'v>(node: Node<'_>, names: &[String]) -> Option<Cow<'v, str>> {
    let member = |name: &String| node.member(name)?.text().map(Json::from);
    let texts: Vec<Json> = names.iter().map(member).collect::<Option<_>>()?;
    Some(Json::from(texts).to_string().into())
}
