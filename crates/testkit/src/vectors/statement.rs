//! NamedStatements from their sources.

use std::collections::BTreeMap;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jose::jcs;
use registration::aer;
use scitt::header::Label;
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder, cbor};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{ByteEdit, DocumentEdit, LiteralBytes, unhex};
use crate::conversations::json_as_cbor;
use crate::keys::ed25519;

/// The description of one statement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementSource {
    /// The whole message in hexadecimal, instead of everything else.
    hex: Option<String>,
    /// The payload as JSON, before the edits.
    document: Option<String>,
    #[serde(default)]
    edit: Vec<DocumentEdit>,
    /// Signature in the document, made after its edits.
    inner_signature: Option<InnerSignature>,
    /// Leaves the document without the inner signature of its base.
    #[serde(default)]
    unsigned: bool,
    /// Edits after the inner signature.
    #[serde(default)]
    tamper: Vec<DocumentEdit>,
    #[serde(default)]
    encoding: DocumentEncoding,
    /// Edits of the encoded document, before it is put into a byte string, or of the literal payload.
    #[serde(default)]
    bytes: Vec<ByteEdit>,
    /// Literal payload instead of the document.
    payload: Option<LiteralBytes>,
    /// Registers the SHA-256 of the payload instead of it.
    #[serde(default)]
    digest: bool,
    /// Leaves the payload out of the message.
    #[serde(default)]
    detached: bool,
    /// Name of the key that signs the statement.
    #[serde(default)]
    key: String,
    #[serde(default)]
    header: BTreeMap<String, HeaderValueSource>,
    #[serde(default)]
    claims: BTreeMap<String, HeaderValueSource>,
    #[serde(default)]
    unprotected: BTreeMap<String, HeaderValueSource>,
    /// Members that the statement does not take over from its base, as `header.NAME` or `claims.NAME`.
    #[serde(default)]
    without: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DocumentEncoding {
    /// Canonical JSON (RFC 8785).
    #[default]
    Json,
    /// Canonical JSON in a CBOR byte string.
    JsonInCbor,
    /// The document's data as CBOR.
    Cbor,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InnerSignature {
    kind: InnerSignatureKind,
    key: String,
    /// Header of the JWS in a Verdict, exactly as it is signed.
    header: Option<String>,
    /// Whether the JWS in a Verdict has its payload in it.
    #[serde(default)]
    attached: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum InnerSignatureKind {
    /// An entry of `signatures` in an execution receipt.
    AerReceipt,
    /// An entry of `signatures` in a registry, by the signer `operator`.
    AgentroaRegistry,
    /// The JWS in `signature` of a Verdict.
    VapVerdict,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HeaderValueSource {
    Integer(i64),
    Text(String),
    Made(ComputedHeaderValue),
}

/// A value that is not written out, or not text or an integer; one member, or `digest_of` and `prefix`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputedHeaderValue {
    /// Text of this place in the document.
    from: Option<String>,
    digest_of: Option<String>,
    prefix: Option<String>,
    /// `did:key` of this key.
    did_key: Option<String>,
    /// Byte string in hexadecimal.
    bytes: Option<String>,
    /// Byte string of this text.
    utf8: Option<String>,
    /// JSON, whose data model is that of CBOR.
    json: Option<String>,
    /// CBOR in hexadecimal.
    cbor: Option<String>,
}

/// A statement that was made.
pub struct BuiltStatement {
    pub message: Vec<u8>,
    /// The payload before it was replaced by its digest.
    pub payload: Vec<u8>,
}

/// The named statements of a family, and the keys that sign.
pub struct NamedStatements<'a> {
    keys: BTreeMap<&'a str, SigningKey>,
    sources: &'a BTreeMap<String, toml::Table>,
}

impl<'a> NamedStatements<'a> {
    /// Creates the statements of a family.
    pub fn new(keys: &'a BTreeMap<String, String>, sources: &'a BTreeMap<String, toml::Table>) -> Self {
        let key = |seed: &str| ed25519(unhex(seed).try_into().expect("a seed has 32 bytes"));
        NamedStatements {
            keys: keys.iter().map(|(name, seed)| (name.as_str(), key(seed))).collect(),
            sources,
        }
    }

    /// Returns the statement with this name, or the one that a table with `base` describes.
    pub fn named(&self, source: &toml::Value, context: &str) -> BuiltStatement {
        match source {
            toml::Value::String(name) => self.build(name, toml::Table::new(), context),
            toml::Value::Table(table) => self.build("", table.clone(), context),
            other => panic!("{context}: {other} is not a statement"),
        }
    }

    /// Returns the statement that is described by its differences from a named one.
    pub fn build(&self, base: &str, differences: toml::Table, context: &str) -> BuiltStatement {
        let table = self.complete(base, differences, context);
        let source = table.try_into().unwrap_or_else(|error| panic!("{context}: {error}"));
        self.encode(&source, context)
    }

    /// Adds what the base of a description says.
    fn complete(&self, base: &str, mut differences: toml::Table, context: &str) -> toml::Table {
        let base = match differences.remove("base") {
            Some(name) => name.as_str().unwrap_or_default().to_owned(),
            None => base.to_owned(),
        };
        if base.is_empty() {
            return differences;
        }
        let known = self.sources.get(&base).unwrap_or_else(|| panic!("{context}: no statement {base}"));
        let mut whole = self.complete("", known.clone(), context);
        for (name, value) in differences {
            match (whole.get_mut(&name), value) {
                (Some(toml::Value::Array(known)), toml::Value::Array(more)) => known.extend(more),
                (Some(toml::Value::Table(known)), toml::Value::Table(more)) if name != "payload" => {
                    known.extend(more);
                }
                (_, value) => drop(whole.insert(name, value)),
            }
        }
        whole
    }

    fn encode(&self, source: &StatementSource, context: &str) -> BuiltStatement {
        if let Some(hex) = &source.hex {
            return BuiltStatement { message: unhex(hex), payload: Vec::new() };
        }
        let (document, payload) = self.payload(source, context);
        let registered = match source.digest {
            true => merkle::EntryDigest::of(&payload).as_bytes().to_vec(),
            false => payload.clone(),
        };
        let mut builder = StatementBuilder::new(registered);
        for (name, value) in source.entries("header", &source.header) {
            builder = builder.label(label(name), self.value(value, &document, context));
        }
        for (name, value) in source.entries("claims", &source.claims) {
            builder = builder.claim(label(name), self.value(value, &document, context));
        }
        for (name, value) in source.entries("unprotected", &source.unprotected) {
            builder = builder.unprotected(label(name), self.value(value, &document, context));
        }
        if source.detached {
            builder = builder.detached();
        }
        let message = builder.encode(self.key(&source.key)).expect("a fixed key signs");
        BuiltStatement { message, payload }
    }

    /// Returns the document of a statement after its edits, and its payload.
    fn payload(&self, source: &StatementSource, context: &str) -> (Value, Vec<u8>) {
        let mut document: Value = source.document.as_deref().map_or(Value::Null, |text| {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{context}: {error}"))
        });
        let digest = |name: &str| self.digest(name, context);
        source.edit.iter().for_each(|edit| edit.apply(&mut document, &digest));
        if let (Some(signature), false) = (&source.inner_signature, source.unsigned) {
            self.sign_document(signature, &mut document);
        }
        source.tamper.iter().for_each(|edit| edit.apply(&mut document, &digest));
        let payload = match &source.payload {
            Some(literal) => source.edited(literal.bytes()),
            None => source.encode_document(&document),
        };
        (document, payload)
    }

    /// Returns a member of an input: a table with `base` is the text of that document, one with `message` the hexadecimal
    /// digits of that statement, one with `json` that JSON.
    pub fn input(&self, source: &toml::Value, context: &str) -> Value {
        match source {
            toml::Value::Table(table) if table.contains_key("base") => {
                let table = self.complete("", table.clone(), context);
                let source = table.try_into().unwrap_or_else(|error| panic!("{context}: {error}"));
                String::from_utf8(self.payload(&source, context).1).expect("a text is UTF-8").into()
            }
            toml::Value::Table(table) if table.len() == 1 && table.contains_key("message") => {
                HEXLOWER.encode(&self.named(&table["message"], context).message).into()
            }
            toml::Value::Table(table) if table.len() == 1 && table.contains_key("json") => {
                let json = table["json"].as_str().unwrap_or_default();
                serde_json::from_str(json).unwrap_or_else(|error| panic!("{context}: {error}"))
            }
            toml::Value::Table(table) => {
                table.iter().map(|(name, value)| (name.clone(), self.input(value, context))).collect()
            }
            toml::Value::Array(items) => items.iter().map(|item| self.input(item, context)).collect(),
            other => other.clone().try_into().unwrap_or_else(|error| panic!("{context}: {error}")),
        }
    }

    /// Adds a signature to a document.
    fn sign_document(&self, signature: &InnerSignature, document: &mut Value) {
        let key = self.key(&signature.key);
        match signature.kind {
            InnerSignatureKind::AerReceipt => {
                let made = aer::inner_signature(document, key).expect("a fixed key signs");
                document["signatures"] = json!([made]);
            }
            InnerSignatureKind::AgentroaRegistry => {
                let made = roa::aer::inner_signature("operator", document, key);
                document["signatures"] = json!([made.expect("a fixed key signs")]);
            }
            InnerSignatureKind::VapVerdict => {
                let header = signature.header.as_deref().unwrap_or(r#"{"alg":"EdDSA","kid":"key-1"}"#);
                let payload = jcs::canonical(document);
                let [header, payload] =
                    [header.as_bytes(), &payload].map(|part| BASE64URL_NOPAD.encode(part));
                let made = key.sign(format!("{header}.{payload}").as_bytes()).expect("a fixed key signs");
                let payload = if signature.attached { payload } else { String::new() };
                document["signature"] =
                    format!("{header}.{payload}.{}", BASE64URL_NOPAD.encode(&made)).into();
            }
        }
    }

    fn value(&self, value: &HeaderValueSource, document: &Value, context: &str) -> cbor::Value<'static> {
        let made = match value {
            HeaderValueSource::Integer(integer) => return (*integer).into(),
            HeaderValueSource::Text(text) => return text.clone().into(),
            HeaderValueSource::Made(made) => made,
        };
        if let Some(pointer) = &made.from {
            let text = document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            text.to_owned().into()
        } else if let Some(name) = &made.digest_of {
            let prefix = made.prefix.as_deref().unwrap_or_default();
            format!("{prefix}{}", self.digest(name, context)).into()
        } else if let Some(name) = &made.did_key {
            self.key(name).public_key().did_key().into()
        } else if let Some(hex) = &made.bytes {
            unhex(hex).into()
        } else if let Some(text) = &made.utf8 {
            text.clone().into_bytes().into()
        } else if let Some(hex) = &made.cbor {
            let bytes = unhex(hex);
            let item = cbor::parse(&bytes, cbor::Limits { depth: 16, items: 1000 });
            item.unwrap_or_else(|error| panic!("{context}: {error}")).value.into_owned()
        } else {
            let json = made.json.as_deref().unwrap_or_else(|| panic!("{context}: a value without a member"));
            json_as_cbor(&serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")))
        }
    }

    fn digest(&self, name: &str, context: &str) -> String {
        let message = self.build(name, toml::Table::new(), context).message;
        let statement = SignedStatement::parse(message).unwrap_or_else(|error| panic!("{name}: {error}"));
        statement.digest().to_string()
    }

    fn key(&self, name: &str) -> &SigningKey {
        self.keys.get(name).unwrap_or_else(|| panic!("no key {name}"))
    }
}

impl StatementSource {
    fn entries<'a>(
        &'a self,
        part: &'a str,
        entries: &'a BTreeMap<String, HeaderValueSource>,
    ) -> impl Iterator<Item = (&'a String, &'a HeaderValueSource)> {
        entries.iter().filter(move |(name, _)| !self.without.contains(&format!("{part}.{name}")))
    }

    fn encode_document(&self, document: &Value) -> Vec<u8> {
        match self.encoding {
            DocumentEncoding::Json => self.edited(jcs::canonical(document)),
            DocumentEncoding::JsonInCbor => cbor::Value::from(self.edited(jcs::canonical(document))).encode(),
            DocumentEncoding::Cbor => self.edited(json_as_cbor(document).encode()),
        }
    }

    fn edited(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.bytes.iter().fold(bytes, |bytes, edit| edit.apply(bytes))
    }
}

/// Returns the label with this name: that of COSE, a number, or a text.
fn label(name: &str) -> Label {
    let number = match name {
        "content_type" => 3,
        "kid" => 4,
        "typ" => 16,
        "iss" => 1,
        "sub" => 2,
        "exp" => 4,
        "iat" => 6,
        "payload_hash_alg" => 258,
        "preimage_content_type" => 259,
        "payload_location" => 260,
        other => return other.parse().map_or_else(|_| Label::Text(other.to_owned()), Label::Int),
    };
    Label::Int(number)
}
