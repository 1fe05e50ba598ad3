//! A shared HTTP cache before a service: nginx, as an operator would run it before a public log.
//!
//! Not here: what is cached for how long, which the service's own headers say.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::http::{Answer, Connection, free_address};
use crate::owned_child::OwnedChild;
use crate::service::Service;
use crate::waiting::until;

/// Variable with the path of nginx. If it is missing the test fails, and is not skipped.
const NGINX: &str = "TABELLION_TEST_NGINX";
/// Header field in which the cache says where its answer is from.
const STATUS: &str = "x-cache-status";
/// Maximum time for the cache to start listening.
const START: Duration = Duration::from_secs(20);

/// A running cache, ended on drop.
pub struct HttpCache {
    _child: OwnedChild,
    address: String,
    _folder: TempDir,
}

impl HttpCache {
    /// Starts a cache before a service.
    pub fn before(service: &Service) -> Self {
        let nginx = std::env::var(NGINX).unwrap_or_else(|_| panic!("{NGINX} names no program: run ./test"));
        let folder = tempfile::tempdir().expect("a folder");
        let address = free_address().to_string();
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings(&folder, &address, service.url())).expect("our own folder");
        let child = Command::new(nginx)
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let cache = Self { _child: OwnedChild(child), address, _folder: folder };
        cache.wait();
        cache
    }

    /// Returns a client of the cache.
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

/// Returns whether an answer is from the cache's own memory.
pub fn is_cached(answer: &Answer) -> bool {
    answer.header(STATUS) == Some("HIT")
}

fn settings(folder: &TempDir, address: &str, service: &str) -> String {
    let folder = folder.path().display();
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
{temporary}  proxy_cache_path {folder}/cache keys_zone=log:1m;
  server {{
    listen {address};
    location / {{
      proxy_pass {service};
      proxy_http_version 1.1;
      proxy_cache log;
      proxy_cache_revalidate on;
      add_header {STATUS} $upstream_cache_status always;
    }}
  }}
}}
"
    )
}
