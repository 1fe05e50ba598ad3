//! The table `[log.index]`: the search index of a log is computed again.
//!
//! ```toml
//! [log.index]
//! attestation_name = "monitor.example"       # name of the key below; without the two, nothing is attested
//! attestation_key = "attestation.pem"        # Ed25519, PKCS #8 PEM
//! ```

use std::path::PathBuf;

use serde::Deserialize;
use serving::config_file::{ConfigReader, SpannedText};
use tlog::key::KeyName;
use toml::Spanned;

/// How the search index of a log is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexWatch {
    /// The key that signs attestations; `None` if nothing is attested.
    pub attestation: Option<AttestationKey>,
}

/// The key that signs attestations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestationKey {
    /// Name of the key in notes.
    pub name: KeyName,
    /// Path of the key in PKCS #8 PEM.
    pub file: PathBuf,
}

/// A `[log.index]` table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexTable {
    attestation_name: Option<SpannedText>,
    attestation_key: Option<PathBuf>,
}

/// Converts a `[log.index]` table.
pub fn read(reader: &mut ConfigReader<'_>, table: Spanned<IndexTable>) -> Option<IndexWatch> {
    let span = table.span();
    let IndexTable { attestation_name, attestation_key } = table.into_inner();
    match (attestation_name, attestation_key) {
        (Some(name), Some(file)) => {
            let key = AttestationKey { name: key_name(reader, &name)?, file: reader.path(file) };
            Some(IndexWatch { attestation: Some(key) })
        }
        (None, None) => Some(IndexWatch::default()),
        _ => {
            reader.mistake(Some(span), "index", "attestation_name and attestation_key need each other");
            None
        }
    }
}

fn key_name(reader: &mut ConfigReader<'_>, text: &SpannedText) -> Option<KeyName> {
    match text.get_ref().parse::<KeyName>() {
        Ok(name) => Some(name),
        Err(why) => reader.wrong(text, "index.attestation_name", format!("{}: {why}", text.get_ref())),
    }
}
