//! A shared HTTP cache before a service: nginx, as an operator would run it before a public log.
//!
//! Not here: what is cached for how long, which the service's own headers say.

use std::path::Path;

use crate::http::{Answer, Connection};
use crate::nginx::Nginx;
use crate::service::Service;

/// Header field in which the cache says where its answer is from.
const STATUS: &str = "x-cache-status";

/// A running cache, ended on drop.
pub struct HttpCache(Nginx);

impl HttpCache {
    /// Starts a cache before a service.
    pub fn before(service: &Service) -> Self {
        Self(Nginx::start(|folder, address| settings(folder, address, service.url())))
    }

    /// Returns a client of the cache.
    pub fn connection(&self) -> Connection {
        self.0.connection()
    }
}

/// Returns whether an answer is from the cache's own memory.
pub fn is_cached(answer: &Answer) -> bool {
    answer.header(STATUS) == Some("HIT")
}

fn settings(folder: &Path, address: &str, service: &str) -> String {
    let folder = folder.display();
    format!(
        "  proxy_cache_path {folder}/cache keys_zone=log:1m;
  server {{
    listen {address};
    location / {{
      proxy_pass {service};
      proxy_http_version 1.1;
      proxy_cache log;
      proxy_cache_revalidate on;
      add_header {STATUS} $upstream_cache_status always;
    }}
  }}"
    )
}
