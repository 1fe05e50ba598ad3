//! The reverse proxy before a log whose settings are in `docs/operations.md`.
//!
//! Not here: TLS, whose lines are left out.

use std::fs;

use crate::http::Connection;
use crate::nginx::Nginx;
use crate::service::Service;

/// The page with the settings.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operations.md");
/// The line with the address in the settings.
const LISTEN: &str = "listen 443 ssl;";
/// The log's address in the settings.
const LOG: &str = "127.0.0.1:7390";

/// A running proxy, which serves the log below `/log`; ended on drop.
pub struct ReverseProxy(Nginx);

impl ReverseProxy {
    /// Starts a proxy with the documented settings before a service.
    pub fn as_documented(service: &Service) -> Self {
        let settings = documented();
        assert!(settings.contains(LISTEN) && settings.contains(LOG), "{settings}");
        let log = service.connection().address().to_owned();
        Self(Nginx::start(|_, address| {
            settings.replace(LISTEN, &format!("listen {address};")).replace(LOG, &log)
        }))
    }

    /// Returns a client of the proxy.
    pub fn connection(&self) -> Connection {
        self.0.connection()
    }
}

/// Returns the settings of nginx in the page, without those of TLS.
fn documented() -> String {
    let page = fs::read_to_string(PAGE).expect("the page is in the repository");
    let lines = page.lines().skip_while(|line| *line != "```nginx").skip(1).take_while(|line| *line != "```");
    lines.filter(|line| !line.trim_start().starts_with("ssl_")).collect::<Vec<_>>().join("\n")
}
