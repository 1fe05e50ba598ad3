//! The configuration of a gateway in dev mode: in the folder of `serve --dev`, whose log trusts its key.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gateway::Config;
use gateway::config::{Dev, Posture, Server};

use super::config_file::DEV_STATE;
use crate::console::{Exit, Failure};
use crate::dev_files::{DEV_FOLDER, DEV_GATEWAY, DEV_GATEWAY_KEY, log_url};
use crate::trust_file;

/// What becomes of callers without VAP: their calls are denied, let through and recorded, or decided under the
/// operator's commitment.
// Words on the variants would be printed as a list, and help has to fit a screen.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WithoutVap {
    Deny,
    Advisory,
    Commitment,
}

impl From<WithoutVap> for Posture {
    fn from(word: WithoutVap) -> Self {
        match word {
            WithoutVap::Deny => Posture::Deny,
            WithoutVap::Advisory => Posture::Advisory,
            WithoutVap::Commitment => Posture::Commitment,
        }
    }
}

/// Returns the configuration.
pub fn config(
    upstream: Server,
    log: Option<&str>,
    listen: SocketAddr,
    without_vap: WithoutVap,
) -> Result<Config, Failure> {
    if !Path::new(DEV_GATEWAY_KEY).is_file() {
        let what = format!("there is no {DEV_GATEWAY_KEY}");
        return Err(Failure::new(Exit::NotFound, "no-dev-log", what)
            .why("a gateway that is tried out runs in the folder of a log that is tried out, and signs with its key")
            .hint("tabellion serve --dev"));
    }
    if !listen.ip().is_loopback() {
        return Err(Failure::new(Exit::Usage, "usage", "dev mode is loopback only"));
    }
    let dev = Dev {
        upstream,
        log: log_url(log)?,
        folder: DEV_STATE.into(),
        listen,
        issuer: DEV_GATEWAY.into(),
        evidence_key: DEV_GATEWAY_KEY.into(),
        without_vap: without_vap.into(),
        hide: vec![DEV_FOLDER.into()],
    };
    let usage = |error: url::ParseError| Failure::new(Exit::Usage, "usage", format!("--log: {error}"));
    let mut config = Config::dev(dev).map_err(usage)?;
    config.log.trust = Some(trust_file::DEV.into()).filter(|path: &PathBuf| path.is_file());
    Ok(config)
}
