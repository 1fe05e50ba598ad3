//! The gateway's own files. A child may not change any of them, and may not read the secret ones.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Reason why the gateway's files cannot be protected from its children.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be kept from servers that the gateway starts: {why}")]
pub struct OwnFilesError {
    path: PathBuf,
    why: String,
}

/// The gateway's own files, as absolute paths without symbolic links: each at its configured path, and at the target if
/// that is a link. Files that do not exist yet are included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// Files that a child may neither read nor change: keys, tokens, state, evidence, the configuration.
    pub secret: Vec<PathBuf>,
    /// Files that a child may not change: trusted keys and certificates, and the gateway's program.
    pub public: Vec<PathBuf>,
}

impl OwnFiles {
    /// Resolves the configured paths of secret and of public files.
    ///
    /// # Errors
    /// An [`OwnFilesError`] if a path cannot be resolved, or is the root of the file system.
    pub fn resolve(secret: Vec<PathBuf>, public: Vec<PathBuf>) -> Result<Self, OwnFilesError> {
        Ok(Self { secret: resolve_all(secret)?, public: resolve_all(public)? })
    }
}

fn resolve_all(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, OwnFilesError> {
    let mut all = Vec::new();
    for path in paths {
        let resolved = resolve(&path).map_err(|error| refused(&path, &error.to_string()))?;
        if resolved.iter().any(|path| path.parent().is_none()) {
            return Err(refused(&path, "it is the root of the file system"));
        }
        all.extend(resolved);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn refused(path: &Path, why: &str) -> OwnFilesError {
    OwnFilesError { path: path.to_owned(), why: why.to_owned() }
}

/// The path with the links of its folder resolved, and its target if it is itself a link.
fn resolve(path: &Path) -> io::Result<Vec<PathBuf>> {
    let path = std::path::absolute(path)?;
    let named = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => resolve_existing(folder)?.join(name),
        _ => std::fs::canonicalize(&path)?,
    };
    let target = resolve_existing(&path)?;
    Ok(if target == named { vec![named] } else { vec![named, target] })
}

/// Resolves the existing part of a path, and appends the rest.
fn resolve_existing(path: &Path) -> io::Result<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path;
    loop {
        match std::fs::canonicalize(existing) {
            Ok(found) => return Ok(missing.into_iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match (existing.parent(), existing.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                missing.push(name.to_owned());
                existing = parent;
            }
            _ => return Err(io::Error::new(io::ErrorKind::NotFound, "a folder of it does not exist")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_link_is_hidden_and_so_is_the_file_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/key"), "secret").unwrap();
        std::os::unix::fs::symlink("real", root.join("folder")).unwrap();
        std::os::unix::fs::symlink("folder/key", root.join("key")).unwrap();
        assert_eq!(resolve(&root.join("key")).unwrap(), [root.join("key"), root.join("real/key")]);
        assert_eq!(resolve(&root.join("folder/key")).unwrap(), [root.join("real/key")]);
    }

    #[test]
    fn what_does_not_exist_yet_is_hidden_where_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(".", root.join("here")).unwrap();
        assert_eq!(resolve(&root.join("here/later/state")).unwrap(), [root.join("later/state")]);
        assert!(resolve(&root.join("later/../state")).is_err(), "nobody knows what `later` will be");
    }
}
