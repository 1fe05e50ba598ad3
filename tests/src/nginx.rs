//! nginx before a service, as an operator would run it before a public log.
//!
//! Not here: what it is configured for (`http_cache`, `reverse_proxy`).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::http::{Connection, free_address};
use crate::owned_child::OwnedChild;
use crate::waiting::until;

/// Variable with the path of nginx. If it is missing the test fails, and is not skipped.
const NGINX: &str = "TABELLION_TEST_NGINX";
/// Maximum time for nginx to start listening.
const START: Duration = Duration::from_secs(20);

/// A running nginx, ended on drop.
pub struct Nginx {
    _child: OwnedChild,
    address: String,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx. `settings` are those of the block `http`, for a folder of its own and the address to listen on.
    pub fn start(settings: impl FnOnce(&Path, &str) -> String) -> Self {
        let nginx = std::env::var(NGINX).unwrap_or_else(|_| panic!("{NGINX} names no program: run ./test"));
        let folder = tempfile::tempdir().expect("a folder");
        let address = free_address().to_string();
        let file = folder.path().join("nginx.conf");
        let settings = settings(folder.path(), &address);
        fs::write(&file, configuration(folder.path(), &settings)).expect("our own folder");
        let child = Command::new(nginx)
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let started = Self { _child: OwnedChild(child), address, _folder: folder };
        started.wait();
        started
    }

    /// Returns a client of nginx.
    pub fn connection(&self) -> Connection {
        Connection::to(&self.address)
    }

    fn wait(&self) {
        until(
            START,
            || format!("nginx does not listen at {}", self.address),
            || std::net::TcpStream::connect(&self.address).is_ok(),
        );
    }
}

fn configuration(folder: &Path, settings: &str) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {folder}/{name};\n"))
        .concat();
    format!(
        "daemon off;
master_process off;
pid {folder}/pid;
events {{}}
http {{
  access_log off;
{temporary}{settings}
}}
"
    )
}
