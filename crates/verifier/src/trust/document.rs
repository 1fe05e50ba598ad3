//! Format of `trust.toml`, and its conversion to a [`TrustStore`] or to a list of all mistakes.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use scitt::key::KeyEnd;
use scitt::x509::{RootCertificate, is_oid};
use scitt::{Algorithm, CoseKey, PublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tlog::key::{KeyKind, VerifierKey};

use super::{
    HeaderProfile, IndexMonitors, IssuerSignature, LeafRule, MAX_TRUST_BYTES, RetiredCheckpointKey,
    TrustStore, TrustedIssuer, TrustedLog, TrustedRoot, read_key,
};

/// Error of [`TrustStore::from_toml`]. All mistakes are reported together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    /// The text is not TOML, or a field is unknown or has the wrong type.
    #[error("{0}")]
    Syntax(String),
    /// The document is well-formed, but values in it are not valid.
    #[error("{}", list(.0))]
    Mistakes(Vec<TrustMistake>),
}

/// An invalid value in a `trust.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustMistake {
    /// Location of the value, such as `log[0].keys[1]`.
    pub location: String,
    /// Description of the mistake.
    pub why: String,
}

impl fmt::Display for TrustMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.why)
    }
}

fn list(mistakes: &[TrustMistake]) -> String {
    mistakes.iter().map(TrustMistake::to_string).collect::<Vec<_>>().join("\n")
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, skip_serializing_if = "is_default")]
    issuer_signature: IssuerSignatureText,
    #[serde(default, skip_serializing_if = "is_default")]
    self_certified: bool,
    #[serde(default, rename = "log", skip_serializing_if = "Vec::is_empty")]
    logs: Vec<LogText>,
    #[serde(default, rename = "issuer", skip_serializing_if = "Vec::is_empty")]
    issuers: Vec<IssuerText>,
    #[serde(default, rename = "root", skip_serializing_if = "Vec::is_empty")]
    roots: Vec<RootText>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LogText {
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(default)]
    leaf_rule: LeafRuleText,
    #[serde(default, skip_serializing_if = "is_default")]
    profile: ProfileText,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checkpoint_keys: Vec<String>,
    #[serde(default)]
    keys: Vec<KeyText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired_checkpoint_keys: Vec<RetiredKeyText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_monitors: Option<IndexMonitorsText>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IndexMonitorsText {
    keys: Vec<String>,
    required: usize,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RetiredKeyText {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compromised_size: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IssuerText {
    iss: String,
    #[serde(default, skip_serializing_if = "is_default")]
    profile: ProfileText,
    #[serde(skip_serializing_if = "Option::is_none")]
    eku: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roots: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<KeyText>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RootText {
    certificate: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    eku: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum KeyText {
    Bare(String),
    Named(NamedKey),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NamedKey {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compromised_size: Option<u64>,
}

#[derive(Deserialize, Serialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum LeafRuleText {
    #[default]
    Sha256OfStatement,
    Statement,
}

#[derive(Deserialize, Serialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum ProfileText {
    #[default]
    Rfc9943,
    Rfc9942,
}

#[derive(Deserialize, Serialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum IssuerSignatureText {
    #[default]
    Required,
    LeftToLog,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TrustStore {
    /// Parses a `trust.toml`.
    ///
    /// # Errors
    /// Returns a [`TrustError`] with all mistakes in the document. A document with a mistake yields no store.
    pub fn from_toml(text: &str) -> Result<Self, TrustError> {
        if text.len() > MAX_TRUST_BYTES {
            return Err(TrustError::Syntax(format!("over {MAX_TRUST_BYTES} bytes")));
        }
        let document: Document = toml::from_str(text)
            .map_err(|error| TrustError::Syntax(error.to_string().trim_end().to_owned()))?;
        let mut mistakes = TrustMistakes(Vec::new());
        let store = document.resolve(&mut mistakes);
        if mistakes.0.is_empty() { Ok(store) } else { Err(TrustError::Mistakes(mistakes.0)) }
    }

    /// Writes a `trust.toml` from which [`from_toml`](Self::from_toml) reads this store. Keys are written as PEM.
    pub fn to_toml(&self) -> String {
        // Serialization cannot fail: a document consists of text, numbers, booleans, and tables of them.
        toml::to_string_pretty(&Document::of(self)).unwrap_or_default()
    }
}

struct TrustMistakes(Vec<TrustMistake>);

impl TrustMistakes {
    fn add(&mut self, location: impl Into<String>, why: impl fmt::Display) {
        self.0.push(TrustMistake { location: location.into(), why: why.to_string() });
    }

    fn keep<T, E: fmt::Display>(&mut self, location: &str, value: Result<T, E>) -> Option<T> {
        value.map_err(|why| self.add(location, why)).ok()
    }
}

impl Document {
    fn resolve(self, mistakes: &mut TrustMistakes) -> TrustStore {
        let numbered = |name: &str, number: usize| format!("{name}[{number}]");
        let logs = self.logs.into_iter().enumerate();
        let issuers = self.issuers.into_iter().enumerate();
        let roots = self.roots.into_iter().enumerate();
        TrustStore {
            logs: logs.map(|(number, log)| log.resolve(&numbered("log", number), mistakes)).collect(),
            issuers: issuers
                .map(|(number, issuer)| issuer.resolve(&numbered("issuer", number), mistakes))
                .collect(),
            roots: roots
                .filter_map(|(number, root)| root.resolve(&numbered("root", number), mistakes))
                .collect(),
            issuer_signature: match self.issuer_signature {
                IssuerSignatureText::Required => IssuerSignature::Required,
                IssuerSignatureText::LeftToLog => IssuerSignature::LeftToLog,
            },
            self_certified: self.self_certified,
        }
    }

    fn of(store: &TrustStore) -> Self {
        Self {
            issuer_signature: match store.issuer_signature {
                IssuerSignature::Required => IssuerSignatureText::Required,
                IssuerSignature::LeftToLog => IssuerSignatureText::LeftToLog,
            },
            self_certified: store.self_certified,
            logs: store.logs.iter().map(LogText::of).collect(),
            issuers: store.issuers.iter().map(IssuerText::of).collect(),
            roots: store.roots.iter().map(RootText::of).collect(),
        }
    }
}

impl LogText {
    fn resolve(self, location: &str, mistakes: &mut TrustMistakes) -> TrustedLog {
        let profile = self.profile.into();
        if self.iss.is_none() && profile == HeaderProfile::Rfc9943 {
            mistakes.add(location, "iss is missing: only a log with profile = \"rfc9942\" may lack it");
        }
        if self.keys.is_empty() {
            mistakes.add(location, "keys is empty: no receipt of this log could be checked");
        }
        for (number, key) in self.checkpoint_keys.iter().enumerate() {
            check_note_key(key, &format!("{location}.checkpoint_keys[{number}]"), "a log", mistakes);
        }
        for (number, retired) in self.retired_checkpoint_keys.iter().enumerate() {
            let location = format!("{location}.retired_checkpoint_keys[{number}]");
            check_note_key(&retired.key, &location, "a log", mistakes);
            if retired.retired_size.or(retired.compromised_size).is_none() {
                mistakes.add(location, "neither retired_size nor compromised_size: it would never end");
            }
        }
        TrustedLog {
            iss: self.iss,
            origin: self.origin,
            keys: resolve_keys(self.keys, location, mistakes),
            leaf_rule: match self.leaf_rule {
                LeafRuleText::Sha256OfStatement => LeafRule::Sha256OfStatement,
                LeafRuleText::Statement => LeafRule::Statement,
            },
            profile,
            checkpoint_keys: self.checkpoint_keys,
            retired_checkpoint_keys: self.retired_checkpoint_keys.into_iter().map(Into::into).collect(),
            index_monitors: self
                .index_monitors
                .map(|monitors| monitors.resolve(&format!("{location}.index_monitors"), mistakes))
                .unwrap_or_default(),
        }
    }

    fn of(log: &TrustedLog) -> Self {
        Self {
            iss: log.iss.clone(),
            origin: log.origin.clone(),
            leaf_rule: match log.leaf_rule {
                LeafRule::Sha256OfStatement => LeafRuleText::Sha256OfStatement,
                LeafRule::Statement => LeafRuleText::Statement,
            },
            profile: log.profile.into(),
            checkpoint_keys: log.checkpoint_keys.clone(),
            retired_checkpoint_keys: log.retired_checkpoint_keys.iter().map(RetiredKeyText::of).collect(),
            keys: log.keys.iter().map(KeyText::of).collect(),
            index_monitors: IndexMonitorsText::of(&log.index_monitors),
        }
    }
}

impl IndexMonitorsText {
    fn resolve(self, location: &str, mistakes: &mut TrustMistakes) -> IndexMonitors {
        let mut known: Vec<VerifierKey> = Vec::new();
        for (number, key) in self.keys.iter().enumerate() {
            let location = format!("{location}.keys[{number}]");
            check_note_key(key, &location, "a monitor", mistakes);
            let Ok(key) = key.parse::<VerifierKey>() else { continue };
            // A signature does not cover the key's name: one key under two names is one monitor.
            if known.iter().any(|other| other.verifying_key() == key.verifying_key()) {
                mistakes.add(location, "the public key is listed already");
            }
            known.push(key);
        }
        if !(1..=self.keys.len()).contains(&self.required) {
            mistakes.add(format!("{location}.required"), format!("not from 1 to {} keys", self.keys.len()));
        }
        IndexMonitors { keys: self.keys, required: self.required }
    }

    fn of(monitors: &IndexMonitors) -> Option<Self> {
        let IndexMonitors { keys, required } = monitors.clone();
        (!keys.is_empty()).then_some(Self { keys, required })
    }
}

impl RetiredKeyText {
    fn of(retired: &RetiredCheckpointKey) -> Self {
        let KeyEnd { retired_at, retired_size, compromised_size } = retired.end;
        Self { key: retired.key.clone(), retired_at, retired_size, compromised_size }
    }
}

impl From<RetiredKeyText> for RetiredCheckpointKey {
    fn from(text: RetiredKeyText) -> Self {
        let RetiredKeyText { key, retired_at, retired_size, compromised_size } = text;
        Self { key, end: KeyEnd { retired_at, retired_size, compromised_size } }
    }
}

/// Checks that a vkey is one of the kind with which `owner` signs notes.
fn check_note_key(key: &str, location: &str, owner: &str, mistakes: &mut TrustMistakes) {
    match key.parse::<VerifierKey>() {
        Ok(key) if key.kind() == KeyKind::Ed25519 => {}
        Ok(_) => mistakes.add(location, format!("a witness's key, not {owner}'s")),
        Err(why) => mistakes.add(location, why),
    }
}

impl IssuerText {
    fn resolve(self, location: &str, mistakes: &mut TrustMistakes) -> TrustedIssuer {
        let is_own_key = PublicKey::from_did(&self.iss).is_ok();
        if self.keys.is_empty() && self.roots.is_empty() && !is_own_key {
            mistakes.add(location, "neither keys nor roots: no statement of this issuer could be checked");
        }
        let roots = self.roots.iter().enumerate().filter_map(|(number, pem)| {
            mistakes.keep(&format!("{location}.roots[{number}]"), RootCertificate::from_pem(pem.trim()))
        });
        let roots = roots.collect();
        check_eku(self.eku.as_deref(), location, mistakes);
        for (number, _) in self.keys.iter().enumerate().filter(|(_, key)| key.has_end()) {
            let why = "only keys of a log end at a tree size: to trust a key of an issuer no more, remove it";
            mistakes.add(format!("{location}.keys[{number}]"), why);
        }
        TrustedIssuer {
            keys: resolve_keys(self.keys, location, mistakes),
            roots,
            eku: self.eku,
            profile: self.profile.into(),
            iss: self.iss,
        }
    }

    fn of(issuer: &TrustedIssuer) -> Self {
        Self {
            iss: issuer.iss.clone(),
            profile: issuer.profile.into(),
            eku: issuer.eku.clone(),
            roots: issuer.roots.iter().map(RootCertificate::to_pem).collect(),
            keys: issuer.keys.iter().map(KeyText::of).collect(),
        }
    }
}

impl RootText {
    fn resolve(self, location: &str, mistakes: &mut TrustMistakes) -> Option<TrustedRoot> {
        let certificate = RootCertificate::from_pem(self.certificate.trim());
        let certificate = mistakes.keep(&format!("{location}.certificate"), certificate)?;
        check_eku(self.eku.as_deref(), location, mistakes);
        Some(TrustedRoot { certificate, eku: self.eku })
    }

    fn of(root: &TrustedRoot) -> Self {
        Self { certificate: root.certificate.to_pem(), eku: root.eku.clone() }
    }
}

fn check_eku(eku: Option<&str>, location: &str, mistakes: &mut TrustMistakes) {
    if eku.is_some_and(|eku| !is_oid(eku)) {
        mistakes.add(format!("{location}.eku"), "not an object identifier in dotted form");
    }
}

fn resolve_keys(keys: Vec<KeyText>, location: &str, mistakes: &mut TrustMistakes) -> Vec<CoseKey> {
    let resolve = |(number, key): (usize, KeyText)| {
        let location = format!("{location}.keys[{number}]");
        key.resolve(&location, mistakes)
    };
    keys.into_iter().enumerate().filter_map(resolve).collect()
}

impl KeyText {
    /// Returns `true` if the text says when the key was replaced or from which tree size on it is compromised.
    fn has_end(&self) -> bool {
        match self {
            Self::Bare(_) => false,
            Self::Named(NamedKey { retired_at, retired_size, compromised_size, .. }) => {
                [retired_at, retired_size, compromised_size].iter().any(|end| end.is_some())
            }
        }
    }

    fn resolve(self, location: &str, mistakes: &mut TrustMistakes) -> Option<CoseKey> {
        let named = match self {
            Self::Bare(key) => NamedKey {
                key,
                kid: None,
                alg: None,
                retired_at: None,
                retired_size: None,
                compromised_size: None,
            },
            Self::Named(named) => named,
        };
        let mut key = mistakes.keep(location, read_key(&named.key))?;
        let NamedKey { retired_at, retired_size, compromised_size, .. } = named;
        key.end = KeyEnd { retired_at, retired_size, compromised_size };
        if let Some(kid) = named.kid {
            let kid = BASE64URL_NOPAD.decode(kid.as_bytes());
            key.kid = Some(mistakes.keep(&format!("{location}.kid (unpadded base64url)"), kid)?);
        }
        if let Some(name) = named.alg {
            match Algorithm::from_name(&name).filter(|algorithm| key.key.accepts(*algorithm)) {
                Some(algorithm) => key.algorithm = Some(algorithm),
                None => mistakes.add(format!("{location}.alg"), format!("not for a {} key", key.key.curve())),
            }
        }
        Some(key)
    }

    fn of(key: &CoseKey) -> Self {
        let pem = key.key.to_spki_pem();
        let KeyEnd { retired_at, retired_size, compromised_size } = key.end;
        if key.kid.is_none() && key.algorithm.is_none() && key.end == KeyEnd::default() {
            return Self::Bare(pem);
        }
        Self::Named(NamedKey {
            key: pem,
            kid: key.kid.as_ref().map(|kid| BASE64URL_NOPAD.encode(kid)),
            alg: key.algorithm.map(|algorithm| algorithm.name().to_owned()),
            retired_at,
            retired_size,
            compromised_size,
        })
    }
}

impl From<ProfileText> for HeaderProfile {
    fn from(text: ProfileText) -> Self {
        match text {
            ProfileText::Rfc9943 => Self::Rfc9943,
            ProfileText::Rfc9942 => Self::Rfc9942,
        }
    }
}

impl From<HeaderProfile> for ProfileText {
    fn from(profile: HeaderProfile) -> Self {
        match profile {
            HeaderProfile::Rfc9943 => Self::Rfc9943,
            HeaderProfile::Rfc9942 => Self::Rfc9942,
        }
    }
}
