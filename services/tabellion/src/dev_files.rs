//! The files that `serve --dev` creates in the working directory, which other commands use by default, and the names in
//! them.

use crate::console::{Exit, Failure};

/// The folder, relative to the working directory.
pub const DEV_FOLDER: &str = "tabellion-dev";
/// The configuration in the folder, for commands on the log's keys and database.
pub const DEV_CONFIG: &str = "tabellion-dev/tabellion.toml";
/// The file with the service's URL: the default service of commands in the same folder.
pub const DEV_URL: &str = "tabellion-dev/url";
/// The issuer key that `serve --dev` creates and trusts.
pub const DEV_KEY: &str = "tabellion-dev/issuer.key";
/// The name of the issuer whose key is [`DEV_KEY`].
pub const DEV_ISSUER: &str = "https://dev.issuer.example";
/// The issuer of `gateway run --dev`.
pub const DEV_GATEWAY: &str = "https://gateway.dev.tabellion.example";
/// The key of [`DEV_GATEWAY`], which `serve --dev` creates.
pub const DEV_GATEWAY_KEY: &str = "tabellion-dev/gateway.key";

/// Returns the URL of the log that a service in dev mode uses: the named one, or else that of `serve --dev` in this
/// folder.
pub fn log_url(named: Option<&str>) -> Result<String, Failure> {
    if let Some(url) = named {
        return Ok(url.to_owned());
    }
    match std::fs::read_to_string(DEV_URL) {
        Ok(url) => Ok(url.trim().to_owned()),
        Err(_) => Err(Failure::new(Exit::NotFound, "no-dev-log", "no log of dev mode serves in this folder")
            .hint("tabellion serve --dev")),
    }
}
