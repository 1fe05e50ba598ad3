//! The files that are served: read again when they change, verified, and never served before.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use jose::json::JsonError;
use roa::limits::{DELTAS, REGISTRY};
use roa::registry::{DeltaList, Registry, RegistryDocument, RegistryError, RegistryVersion};
use roa::signed::Signed;
use roa::text::Sha256Digest;
use scitt::PublicKey;

/// The reason why a file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum UnusableFile {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file is longer than this number of bytes.
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    /// The file has another format.
    #[error("has another format: {0}")]
    Malformed(#[from] JsonError),
    /// The signatures are not by the operators, or the version does not follow the one that was served before.
    #[error("is not accepted: {0}")]
    Refused(#[from] RegistryError),
}

/// A verified document in its canonical form.
#[derive(Clone, Debug)]
pub struct VerifiedDocument {
    /// The canonical form.
    pub bytes: Bytes,
    /// The digest of the canonical form.
    pub digest: Sha256Digest,
}

/// A registry file, its file of deltas, and what was last read from them.
#[derive(Debug)]
pub struct RegistryFiles {
    registry: PathBuf,
    deltas: Option<PathBuf>,
    operators: Vec<PublicKey>,
    last: Mutex<LastRead>,
}

/// The versions of the files that were read last.
#[derive(Debug, Default)]
struct LastRead {
    /// The newest version that was verified.
    registry: Option<Registry>,
    registry_file: Option<ReadFile>,
    deltas_file: Option<ReadFile>,
}

/// A file that was verified, in the state that its stamp names.
#[derive(Clone, Debug)]
struct ReadFile {
    stamp: FileStamp,
    document: VerifiedDocument,
}

/// The state of a file: a write or a replacement changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl RegistryFiles {
    /// Names the files, and the keys of the registry's operators. Nothing is read yet.
    pub fn new(registry: PathBuf, deltas: Option<PathBuf>, operators: Vec<PublicKey>) -> Self {
        Self { registry, deltas, operators, last: Mutex::default() }
    }

    /// Returns the registry with its `ttl_seconds`.
    ///
    /// # Errors
    /// [`UnusableFile`] if the file as it is now cannot be served.
    pub fn registry(&self) -> Result<(VerifiedDocument, u32), UnusableFile> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let document = self.read_registry(&mut last)?;
        let ttl_seconds = last.registry.as_ref().map_or(0, |registry| registry.document().ttl_seconds);
        Ok((document, ttl_seconds))
    }

    /// Returns the deltas, which a gateway with the registry of this server would accept; `None` if no file of deltas is
    /// served.
    ///
    /// # Errors
    /// [`UnusableFile`] if the file as it is now cannot be served, or no registry was ever verified.
    pub fn deltas(&self) -> Result<Option<VerifiedDocument>, UnusableFile> {
        let Some(file) = &self.deltas else { return Ok(None) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A registry that cannot be read does not hold up revocations: the version before it is enough to verify them.
        let read = self.read_registry(&mut last);
        let registry = match (&last.registry, read) {
            (Some(registry), _) => registry,
            (None, Err(error)) => return Err(error),
            (None, Ok(_)) => return Ok(None),
        };
        let known = last.deltas_file.as_ref();
        let read = read_changed(file, DELTAS.bytes, known, |bytes| {
            let list = DeltaList::parse(bytes)?;
            registry.extended_by(&list, &self.operators)?;
            let bytes = Bytes::from(list.canonical());
            Ok(VerifiedDocument { digest: Sha256Digest::of(&bytes), bytes })
        })?;
        Ok(Some(last.deltas_file.insert(read).document.clone()))
    }

    /// Returns the version of the registry that was verified last.
    pub fn version(&self) -> Option<RegistryVersion> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).registry.as_ref().map(Registry::version)
    }

    fn read_registry(&self, last: &mut LastRead) -> Result<VerifiedDocument, UnusableFile> {
        let before = &mut last.registry;
        let read = read_changed(&self.registry, REGISTRY.bytes, last.registry_file.as_ref(), |bytes| {
            let signed = Signed::<RegistryDocument>::parse(bytes)?;
            let verified = match &before {
                Some(before) => before.replaced_by(&signed, &self.operators)?,
                None => Registry::open(&signed, &self.operators)?,
            };
            *before = Some(verified);
            Ok(VerifiedDocument {
                bytes: Bytes::copy_from_slice(signed.canonical()),
                digest: signed.digest(),
            })
        })?;
        Ok(last.registry_file.insert(read).document.clone())
    }
}

/// Returns the file as it was read before if it did not change since, or else reads and verifies it.
fn read_changed(
    path: &Path,
    most: usize,
    known: Option<&ReadFile>,
    verify: impl FnOnce(&[u8]) -> Result<VerifiedDocument, UnusableFile>,
) -> Result<ReadFile, UnusableFile> {
    // The opening of a pipe would wait for a writer, and all requests with it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file").into());
    }
    let file = File::open(path)?;
    let stamp = FileStamp::of(&file.metadata()?);
    if let Some(known) = known.filter(|known| known.stamp == stamp) {
        return Ok(known.clone());
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(UnusableFile::TooLong(most));
    }
    Ok(ReadFile { stamp, document: verify(&bytes)? })
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { inode: metadata.ino(), bytes: metadata.size(), changed }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use scitt::Signer;
    use serde_json::json;
    use testkit::agentroa::{key_of, registry};

    use super::*;

    struct Site {
        folder: tempfile::TempDir,
        files: RegistryFiles,
    }

    impl Site {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let operators = vec![key_of("operator").public_key().clone()];
            let path = |name: &str| folder.path().join(name);
            let files = RegistryFiles::new(path("registry.json"), Some(path("deltas.json")), operators);
            Self { folder, files }
        }

        /// Replaces a file, as the commands do.
        fn write(&self, name: &str, bytes: &[u8]) {
            let new = self.folder.path().join("new");
            fs::write(&new, bytes).unwrap();
            fs::rename(new, self.folder.path().join(name)).unwrap();
        }
    }

    #[test]
    fn a_file_is_read_again_when_it_changed() {
        let site = Site::new();
        assert!(matches!(site.files.registry(), Err(UnusableFile::Read(_))));
        site.write("registry.json", &registry(1, |_| ()));
        let (first, ttl) = site.files.registry().unwrap();
        assert_eq!((site.files.registry().unwrap().0.digest, ttl), (first.digest, 3600));
        site.write("registry.json", &registry(2, |members| members["ttl_seconds"] = 60.into()));
        let (second, ttl) = site.files.registry().unwrap();
        assert_eq!((second.digest != first.digest, ttl), (true, 60));
    }

    #[test]
    fn what_is_no_registry_of_the_operators_or_an_older_version_is_not_served() {
        let site = Site::new();
        site.write("registry.json", &registry(2, |_| ()));
        let (served, _) = site.files.registry().unwrap();
        site.write("registry.json", b"{}");
        assert!(matches!(site.files.registry(), Err(UnusableFile::Malformed(_))));
        let members = testkit::agentroa::registry_members(3);
        let forged = testkit::agentroa::signed::<RegistryDocument>(members, &["stranger"]);
        site.write("registry.json", forged.canonical());
        let refused = |files: &RegistryFiles| match files.registry() {
            Err(UnusableFile::Refused(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&site.files), RegistryError::Signature);
        site.write("registry.json", &registry(1, |_| ()));
        assert!(matches!(refused(&site.files), RegistryError::Rollback { .. }));
        site.write("registry.json", &served.bytes);
        assert_eq!(
            site.files.registry().unwrap().0.digest,
            served.digest,
            "the version in force may come again"
        );
        let long = vec![b' '; REGISTRY.bytes + 1];
        site.write("registry.json", &long);
        assert!(matches!(site.files.registry(), Err(UnusableFile::TooLong(_))));
    }

    #[test]
    fn a_pipe_in_the_place_of_the_registry_holds_up_no_request() {
        let site = Site::new();
        site.write("registry.json", &registry(1, |_| ()));
        let (served, _) = site.files.registry().unwrap();
        let path = site.folder.path().join("registry.json");
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(site.files.registry(), Err(UnusableFile::Read(_))));
        site.write("registry.json", &served.bytes);
        assert_eq!(site.files.registry().unwrap().0.digest, served.digest);
    }

    #[test]
    fn deltas_are_served_if_they_follow_the_registry_even_while_its_file_is_broken() {
        let site = Site::new();
        site.write("deltas.json", b"[]");
        assert!(site.files.deltas().is_err(), "nothing was verified yet");
        site.write("registry.json", &registry(1, |_| ()));
        assert_eq!(&site.files.deltas().unwrap().unwrap().bytes[..], b"[]");
        let delta = |previous: u64, signer: &str| {
            let members = json!({
                "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1,
                "previous_sequence": previous, "sequence": previous + 1, "issued_at": "2026-04-08T14:04:00Z",
                "revocations": [{
                    "sequence": previous + 1, "revoked_at": "2026-04-08T14:04:00Z",
                    "subject": { "envelope": "env:0000000000000001" },
                }],
            });
            let mut list = DeltaList::default();
            list.push(testkit::agentroa::signed(members, &[signer])).unwrap();
            list.canonical()
        };
        site.write("registry.json", b"{}");
        site.write("deltas.json", &delta(1, "operator"));
        assert_eq!(site.files.deltas().unwrap().unwrap().bytes, delta(1, "operator"));
        for (previous, signer) in [(2, "operator"), (1, "stranger")] {
            site.write("deltas.json", &delta(previous, signer));
            assert!(matches!(site.files.deltas(), Err(UnusableFile::Refused(_))), "{previous} by {signer}");
        }
    }
}
