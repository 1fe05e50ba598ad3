//! The gateway's configuration file, or that of `gateway run --dev`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use gateway::Config;
use gateway::config::{Dev, Posture, Server};

use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::dev_files::{DEV_GATEWAY, DEV_GATEWAY_KEY};
use crate::exposed_settings;
use crate::settings::daemon_file;

/// The state folder of `gateway run --dev`.
pub const DEV_STATE: &str = "tabellion-dev/gateway";
/// The listener's address of `gateway run --dev`.
pub const DEV_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

/// The default paths of the configuration file, in order of precedence.
const PLACES: &[&str] = &["gateway.toml", "/etc/tabellion/gateway.toml"];
/// The code of a configuration that cannot be used.
const CODE: &str = "gateway-config";

/// Returns the path of the configuration file: `--config`, or else the first existing default.
pub fn find(context: &Context) -> Result<PathBuf, Failure> {
    daemon_file::find(context.config(), PLACES)?.ok_or_else(|| {
        Failure::new(Exit::NotFound, "config-not-found", "there is no gateway.toml")
            .hint("tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp")
    })
}

/// Returns the configuration for commands about a gateway's evidence: from its file, or else that of `gateway run
/// --dev` in this folder.
pub fn read_or_dev(context: &Context) -> Result<Config, Failure> {
    match find(context) {
        Ok(path) => read(&path),
        Err(_) if context.config().is_none() && Path::new(DEV_STATE).is_dir() => dev(),
        Err(failure) => Err(failure),
    }
}

/// Returns the configuration of `gateway run --dev`, with placeholders for its server and log.
fn dev() -> Result<Config, Failure> {
    let nowhere = "http://127.0.0.1:7390";
    let unusable = |error: url::ParseError| Failure::new(Exit::Failure, CODE, error.to_string());
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

/// Reads a configuration. It is refused (`gateway-config`) if other users may change it or the secret files that it
/// names.
pub fn read(path: &Path) -> Result<Config, Failure> {
    let config = Config::from_file(path).map_err(|why| daemon_file::refused(path, CODE, &why))?;
    let changeable = exposed_settings::gateway::mistakes(&config);
    if changeable.is_empty() {
        return Ok(config);
    }
    let failure = daemon_file::unusable(path, CODE);
    Err(changeable.into_iter().fold(failure, |failure, mistake| failure.fact(mistake.key, mistake.what)))
}
