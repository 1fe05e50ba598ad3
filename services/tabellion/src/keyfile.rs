//! Key files: PKCS#8 PEM that only its owner may read, and the names of public keys.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use scitt::{Algorithm, PublicKey, Signer, SigningKey};
use serde::Serialize;

use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe, shell};

/// Reads a secret key. Files that others may access are refused (`key-not-private`).
pub fn read(path: &Path) -> Result<SigningKey, Failure> {
    refuse_readable_by_others(path)?;
    SigningKey::from_pkcs8_pem(&files::read_text(path)?)
        .map_err(|error| Failure::new(Exit::Failure, "key-unusable", format!("{}: {error}", path.display())))
}

/// Returns the failure for something that cannot be signed.
pub fn cannot_sign(error: impl Display) -> Failure {
    Failure::new(Exit::Failure, "cannot-sign", error.to_string())
}

/// Generates a key and writes it. Existing files are never overwritten (`key-exists`).
pub fn generate(path: &Path, algorithm: Algorithm) -> Result<SigningKey, Failure> {
    if path.exists() {
        return Err(Failure::new(Exit::Exists, "key-exists", format!("{} exists", path.display()))
            .why("a key that is written over is lost for ever")
            .hint("name another file, or move this one away"));
    }
    let key = SigningKey::generate(algorithm)
        .map_err(|error| Failure::new(Exit::Failure, "key", error.to_string()))?;
    write(path, &key)?;
    Ok(key)
}

/// Writes a key with [`Access::Secret`]: for its owner only (0600). A different existing file is kept (`exists`).
pub fn write(path: &Path, key: &SigningKey) -> Result<(), Failure> {
    let pem = key.to_pkcs8_pem().map_err(|error| Failure::new(Exit::Failure, "key", error.to_string()))?;
    files::write(path, pem.as_bytes(), Access::Secret, Existing::Keep)
}

/// Reads a public key: a `did:key` or `did:jwk`, or a file with a secret or public key in any supported encoding.
pub fn read_public(argument: &str) -> Result<PublicKey, Failure> {
    if argument.starts_with("did:") {
        return public_from_text(argument).map_err(|why| unusable(argument, why));
    }
    let bytes = files::read(Path::new(argument))?;
    let key = match std::str::from_utf8(&bytes) {
        Ok(text) => public_from_text(text),
        Err(_) => PublicKey::from_cose_key(&bytes).map_err(|error| error.to_string()),
    };
    key.map_err(|why| unusable(argument, why))
}

fn public_from_text(text: &str) -> Result<PublicKey, String> {
    if text.contains("PRIVATE KEY") {
        return SigningKey::from_pkcs8_pem(text)
            .map(|key| key.public_key().clone())
            .map_err(|error| error.to_string());
    }
    verifier::trust::read_key(text).map(|key| key.key).map_err(|error| error.to_string())
}

fn unusable(source: &str, why: String) -> Failure {
    Failure::new(Exit::Failure, "key-unusable", format!("{source}: {why}"))
        .why("a key is a PKCS#8 or SPKI PEM, a JWK, a COSE_Key, a did:key or a did:jwk")
}

fn refuse_readable_by_others(path: &Path) -> Result<(), Failure> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    if metadata.is_file() && !durable::is_private(&metadata) {
        return Err(Failure::new(
            Exit::Failure,
            "key-not-private",
            format!("others may read {}", path.display()),
        )
        .hint(format!("chmod 600 {}", shell::path(path))));
    }
    Ok(())
}

/// The names of a public key, for output.
#[derive(Clone, Debug, Serialize)]
pub struct KeyNames {
    /// The RFC 9679 thumbprint as base64url: the `kid` in statements signed with the key.
    pub kid: String,
    /// The default signature algorithm of the key's curve.
    pub alg: &'static str,
    /// The key as a `did:key`.
    pub did_key: String,
    /// The verifier key for witnesses and verifiers of checkpoints (C2SP signed-note), if the key signs checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vkey: Option<String>,
    /// The path of the key file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl KeyNames {
    /// Returns the names of `key`.
    pub fn of(key: &PublicKey, file: Option<&Path>) -> Self {
        Self {
            kid: BASE64URL_NOPAD.encode(&key.thumbprint()),
            alg: Algorithm::default_for(key.curve()).name(),
            did_key: key.did_key(),
            vkey: None,
            file: file.map(|path| path.display().to_string()),
        }
    }
}

impl Report for KeyNames {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(file) = &self.file {
            writeln!(out, "file  {}", safe(file))?;
        }
        writeln!(out, "alg   {}\nkid   {}\ndid   {}", self.alg, self.kid, self.did_key)?;
        self.vkey.iter().try_for_each(|vkey| writeln!(out, "vkey  {}", safe(vkey)))
    }
}
