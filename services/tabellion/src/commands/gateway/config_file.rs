//! The gateway's own configuration file: where it is, and its mistakes as our failure.

use std::path::{Path, PathBuf};

use gateway::Config;
use gateway::config::Mistakes;

use crate::cli::Context;
use crate::console::{Exit, Failure};

/// Where a configuration is looked for when none is named: the first one found is the one.
const PLACES: &[&str] = &["gateway.toml", "/etc/tabellion/gateway.toml"];

/// The file.
pub fn find(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(path) = context.config() {
        return match path.is_file() {
            true => Ok(path.to_owned()),
            false => Err(none(&format!("there is no configuration file {}", path.display()))),
        };
    }
    let installed =
        std::env::var_os("CONFIGURATION_DIRECTORY").map(|folder| Path::new(&folder).join("gateway.toml"));
    let mut places = installed.into_iter().chain(PLACES.iter().map(PathBuf::from));
    places.find(|path| path.is_file()).ok_or_else(|| none("there is no gateway.toml"))
}

fn none(what: &str) -> Failure {
    Failure::new(Exit::NotFound, "config-not-found", what)
        .hint("tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp")
}

/// What it says.
pub fn read(path: &Path) -> Result<Config, Failure> {
    Config::from_file(path).map_err(|mistakes| refused(path, &mistakes))
}

/// Every mistake, with its line.
fn refused(path: &Path, mistakes: &Mistakes) -> Failure {
    let what = format!("{} cannot be used", path.display());
    let failure = Failure::new(Exit::Usage, "gateway-config", what);
    mistakes.0.iter().fold(failure, |failure, mistake| {
        let place = match mistake.line {
            Some(line) => format!("line {line}"),
            None => "file".to_owned(),
        };
        failure.fact(place, format!("{}: {}", mistake.key, mistake.why))
    })
}
