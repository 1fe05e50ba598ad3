//! Attestations: signed notes which state that this monitor computed a head of the index (`verifier::index`).
//!
//! ```text
//! <state_dir>/<log>/attestations/<size>.note      one for each right head, the newest 1,024
//! <state_dir>/<log>/attestation                   the newest one
//! ```

use std::path::Path;

use durable::FileAccess;
use lookup_tree::IndexHead;
use tlog::checkpoint::Origin;
use tlog::key::KeyName;
use tlog::note::LocalKey;
use verifier::index::IndexAttestation;

use crate::limits::{KEY_FILE_BYTES, MAX_ATTESTATIONS};
use crate::state::{LogFolder, MonitorStateError};

/// Folder of the notes in the log's folder.
const FOLDER: &str = "attestations";
/// File of the newest note.
const NEWEST: &str = "attestation";
/// End of the name of a note's file.
const ENDING: &str = ".note";

/// The signer of attestations.
pub struct Attestor(LocalKey);

impl Attestor {
    /// Reads the key from a file in PKCS #8 PEM.
    ///
    /// # Errors
    /// Returns the reason why the file holds no Ed25519 key.
    pub fn open(name: &KeyName, path: &Path) -> Result<Self, String> {
        let failed = |why: &dyn ToString| format!("{}: {}", path.display(), why.to_string());
        let bytes = durable::read(path, KEY_FILE_BYTES).map_err(|why| failed(&why))?;
        let bytes = bytes.ok_or_else(|| failed(&"there is no such file"))?;
        let pem = std::str::from_utf8(&bytes).map_err(|why| failed(&why))?;
        LocalKey::from_pkcs8_pem(name.clone(), pem).map(Self).map_err(|why| failed(&why))
    }

    /// Signs and stores the attestation of a head. Once `Ok`, it survives power loss.
    pub fn attest(
        &self,
        folder: &LogFolder,
        origin: &Origin,
        head: &IndexHead,
    ) -> Result<(), MonitorStateError> {
        let notes = folder.file(FOLDER);
        let failed = |why: std::io::Error| MonitorStateError::File { path: notes.clone(), why };
        let note = IndexAttestation::of(origin.clone(), head).sign(&self.0);
        let note = note.map_err(|why| failed(std::io::Error::other(why.to_string())))?.to_string();
        durable::make_folder(&notes, FileAccess::Secret).map_err(failed)?;
        folder.write(&format!("{FOLDER}/{:020}{ENDING}", head.size.get()), note.as_bytes())?;
        folder.write(NEWEST, note.as_bytes())?;
        remove_oldest(&notes).map_err(failed)
    }
}

fn remove_oldest(notes: &Path) -> std::io::Result<()> {
    let mut names = durable::names(notes, ENDING)?;
    names.sort();
    let surplus = names.len().saturating_sub(MAX_ATTESTATIONS);
    names.iter().take(surplus).try_for_each(|name| durable::remove(&notes.join(name)))
}
