//! The folders below `~/.local/state/tabellion` in which commands keep their own files.

use std::path::{Path, PathBuf};

use crate::console::{Exit, Failure, files};

/// Returns the absolute path of the folder that a flag names, otherwise of `name` in `$XDG_STATE_HOME/tabellion` or
/// `~/.local/state/tabellion`.
pub fn state_folder(named: Option<&Path>, flag: &str, name: &str) -> Result<PathBuf, Failure> {
    match (named, std::env::var_os("XDG_STATE_HOME"), std::env::home_dir()) {
        (Some(named), ..) => std::path::absolute(named).map_err(|error| files::unreadable(named, &error)),
        (None, Some(state), _) => Ok(Path::new(&state).join("tabellion").join(name)),
        (None, None, Some(home)) => Ok(home.join(".local/state/tabellion").join(name)),
        (None, None, None) => {
            Err(Failure::new(Exit::Usage, "usage", format!("there is no home folder: {flag} DIR")))
        }
    }
}
