//! Configuration files of the gateway, the monitor and the verification service: where they are, and how mistakes in them
//! are reported.

use std::path::{Path, PathBuf};

use serving::config_file::Mistakes;

use super::{folder_of_variable, no_such_file};
use crate::console::{Exit, Failure, files};

/// Returns the path of a configuration file: `named`, from `--config`, or else the first existing one of `places`. The
/// first place is the file's name; systemd's folder for configuration has precedence over it.
///
/// # Errors
/// `config-not-found` if there is no file with the path in `--config`.
pub fn find(named: Option<&Path>, places: &[&str]) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = named {
        return if path.is_file() { Ok(Some(path.to_owned())) } else { Err(no_such_file(path)) };
    }
    let installed = folder_of_variable("CONFIGURATION_DIRECTORY").zip(places.first());
    let installed = installed.map(|(folder, name)| folder.join(name));
    let mut places = installed.into_iter().chain(places.iter().map(PathBuf::from));
    Ok(places.find(|path| path.is_file()))
}

/// Reads a configuration with `parse`, which gets the text and the file's folder.
///
/// # Errors
/// `code` with all mistakes, each with its line.
pub fn read<C>(
    path: &Path,
    code: &str,
    parse: impl FnOnce(&str, &Path) -> Result<C, Mistakes>,
) -> Result<C, Failure> {
    let text = files::read_text(path)?;
    parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(|mistakes| refused(path, code, &mistakes))
}

/// The failure for a configuration with these mistakes.
pub fn refused(path: &Path, code: &str, mistakes: &Mistakes) -> Failure {
    mistakes.0.iter().fold(unusable(path, code), |failure, mistake| {
        let place = match mistake.line {
            Some(line) => format!("line {line}"),
            None => "file".to_owned(),
        };
        failure.fact(place, format!("{}: {}", mistake.key, mistake.why))
    })
}

/// The failure for a configuration that cannot be used, without reasons.
pub fn unusable(path: &Path, code: &str) -> Failure {
    Failure::new(Exit::Usage, code, format!("{} cannot be used", path.display()))
}
