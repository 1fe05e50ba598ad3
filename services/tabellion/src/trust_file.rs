//! The trust file, `trust.toml`: its location and access. Its contents never come from a log.

use std::path::{Path, PathBuf};

use verifier::{TrustError, TrustStore};

use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::settings;

/// The trust file in the working directory.
pub const LOCAL: &str = "trust.toml";
/// The trust file that `serve --dev` writes.
pub const DEV: &str = "tabellion-dev/trust.toml";

/// A trust file, `trust.toml`, with its contents.
#[derive(Debug)]
pub struct TrustFile {
    /// The path of the file, which need not exist.
    pub path: PathBuf,
    /// The contents; empty if there is no file.
    pub store: TrustStore,
}

impl TrustFile {
    /// Finds the trust file: `named`, otherwise the setting `trust`, otherwise the first existing one of [`LOCAL`] and
    /// [`DEV`].
    pub fn find(context: &Context, named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = named {
            return Self::read(path);
        }
        let configured = context.settings(Vec::new())?.path("trust");
        if let Some(path) = configured.map_err(|mistake| settings::refuse(vec![mistake]))? {
            return Self::read(&path);
        }
        match [LOCAL, DEV].iter().map(Path::new).find(|path| path.exists()) {
            Some(path) => Self::read(path),
            None => Ok(Self { path: LOCAL.into(), store: TrustStore::default() }),
        }
    }

    /// Finds the trust file to change, as [`find`](Self::find) does, except that `named` need not exist yet.
    pub fn to_change(context: &Context, named: Option<&Path>) -> Result<Self, Failure> {
        match named {
            Some(path) if !path.exists() => {
                Ok(Self { path: path.to_path_buf(), store: TrustStore::default() })
            }
            named => Self::find(context, named),
        }
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let store =
            TrustStore::from_toml(&files::read_text(path)?).map_err(|error| unusable(path, &error))?;
        Ok(Self { path: path.to_path_buf(), store })
    }

    /// Writes the contents to the file.
    pub fn write(&self) -> Result<(), Failure> {
        files::write(&self.path, self.store.to_toml().as_bytes(), Access::Ordinary, Existing::Replace)
    }
}

fn unusable(path: &Path, error: &TrustError) -> Failure {
    Failure::new(Exit::Failure, "trust-unusable", format!("{} cannot be used", path.display()))
        .fact("because", error.to_string())
        .why("no part of a trust file with a mistake is used")
}
