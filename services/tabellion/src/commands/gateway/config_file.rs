//! The gateway's own configuration file: where it is, and its mistakes as our failure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use gateway::Config;
use gateway::config::{Dev, Mistakes, Posture, Server};

use crate::cli::Context;
use crate::commands::serve::dev::{DEV_GATEWAY, DEV_GATEWAY_KEY};
use crate::console::{Exit, Failure};
use crate::exposure;

/// Where a gateway that is tried out keeps its state.
pub const DEV_STATE: &str = "tabellion-dev/gateway";
/// Where it listens.
pub const DEV_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

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

/// The configuration of a gateway whose evidence is looked at: that of its file, or of the one that is tried out here.
pub fn read_or_dev(context: &Context) -> Result<Config, Failure> {
    match find(context) {
        Ok(path) => read(&path),
        Err(_) if context.config().is_none() && Path::new(DEV_STATE).is_dir() => dev(),
        Err(failure) => Err(failure),
    }
}

/// What `gateway run --dev` decides by; its server and its log do not matter here.
fn dev() -> Result<Config, Failure> {
    let nowhere = "http://127.0.0.1:7390";
    let unusable = |error: url::ParseError| Failure::new(Exit::Failure, "gateway-config", error.to_string());
    let dev = Dev {
        upstream: Server::http(nowhere.parse().map_err(unusable)?),
        log: nowhere.to_owned(),
        folder: DEV_STATE.into(),
        listen: DEV_LISTEN,
        issuer: DEV_GATEWAY.into(),
        evidence_key: DEV_GATEWAY_KEY.into(),
        without_vap: Posture::Deny,
        hide: Vec::new(),
    };
    Config::dev(dev).map_err(unusable)
}

/// What it says, if nobody else may change the secrets that it names.
pub fn read(path: &Path) -> Result<Config, Failure> {
    let config = Config::from_file(path).map_err(|mistakes| refused(path, &mistakes))?;
    let changeable = exposure::gateway::mistakes(&config);
    if changeable.is_empty() {
        return Ok(config);
    }
    let failure = unusable(path);
    Err(changeable.into_iter().fold(failure, |failure, mistake| failure.fact(mistake.key, mistake.what)))
}

fn unusable(path: &Path) -> Failure {
    Failure::new(Exit::Usage, "gateway-config", format!("{} cannot be used", path.display()))
}

/// Every mistake, with its line.
fn refused(path: &Path, mistakes: &Mistakes) -> Failure {
    mistakes.0.iter().fold(unusable(path), |failure, mistake| {
        let place = match mistake.line {
            Some(line) => format!("line {line}"),
            None => "file".to_owned(),
        };
        failure.fact(place, format!("{}: {}", mistake.key, mistake.why))
    })
}
