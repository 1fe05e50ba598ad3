//! The table `[log.index]`: the search index of a log is computed again.
//!
//! ```toml
//! [log.index]
//! attestation_name = "monitor.example"       # name of the key below; without the two, nothing is attested
//! attestation_key = "attestation.pem"        # Ed25519, PKCS #8 PEM
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tlog::key::KeyName;

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
    attestation_name: Option<String>,
    attestation_key: Option<PathBuf>,
}

impl IndexTable {
    /// Converts the table; paths are relative to `folder`.
    pub fn read(self, folder: &Path) -> Result<IndexWatch, String> {
        let attestation = match (self.attestation_name, self.attestation_key) {
            (Some(name), Some(file)) => {
                let name = name.parse().map_err(|why| format!("attestation_name: {name}: {why}"))?;
                Some(AttestationKey { name, file: folder.join(file) })
            }
            (None, None) => None,
            _ => return Err("attestation_name and attestation_key need each other".to_owned()),
        };
        Ok(IndexWatch { attestation })
    }
}
