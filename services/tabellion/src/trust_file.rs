//! Where trust is kept: one `trust.toml`, found in a fixed order, and never taken from a log.

use std::path::{Path, PathBuf};

use verifier::{TrustError, TrustStore};

use crate::cli::Context;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::settings;

/// Beside the reader's work.
pub const LOCAL: &str = "trust.toml";
/// What `serve --dev` writes.
pub const DEV: &str = "tabellion-dev/trust.toml";

/// A trust file and what it says.
#[derive(Debug)]
pub struct TrustFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What it says; nothing when there is no file.
    pub store: TrustStore,
}

impl TrustFile {
    /// The file that was named, else that of the settings, else the first of the usual ones.
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

    /// The file to be changed: it need not exist yet.
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

    /// Writes the file.
    pub fn write(&self) -> Result<(), Failure> {
        files::write(&self.path, self.store.to_toml().as_bytes(), Access::Ordinary, Existing::Replace)
    }
}

fn unusable(path: &Path, error: &TrustError) -> Failure {
    Failure::new(Exit::Failure, "trust-unusable", format!("{} cannot be used", path.display()))
        .fact("because", error.to_string())
        .why("a trust file is believed whole or not at all")
}
