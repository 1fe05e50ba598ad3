//! Our own service on a socket, in a folder of its own.
#![allow(dead_code)]

use std::fs;
use std::path::PathBuf;

use client::{Client, Options};
use scitt::SignedStatement;
use tempfile::TempDir;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use transparency::{Config, Limits, Rate, Service};

/// A folder with everything that a log is started with.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// Fresh keys, and this policy.
    pub fn new(policy: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        testkit::write_log_files(place.folder.path(), policy);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The checkpoint key, as it is given to those who watch.
    pub fn vkey(&self) -> VerifierKey {
        let pem = fs::read_to_string(self.path("checkpoint.pem")).unwrap();
        LocalKey::from_pkcs8_pem(testkit::ORIGIN.parse().unwrap(), &pem).unwrap().key().clone()
    }

    pub async fn start(&self) -> Site {
        let config = Config {
            limits: Limits { writes: Rate::per_second(10_000, 10_000), ..Limits::default() },
            ..Config::in_folder(self.folder.path(), testkit::ORIGIN, testkit::LOG_ISS)
        };
        let service = Service::start(config).await.unwrap();
        let url = format!("http://{}/", service.addresses().public);
        let client = Client::new(&url, Options::default()).unwrap();
        Site { url, client, _service: service }
    }
}

/// A running service and a client of it.
pub struct Site {
    pub url: String,
    client: Client,
    _service: Service,
}

impl Site {
    /// Registers a statement and waits for its receipt.
    pub async fn register(&self, statement: &SignedStatement) {
        self.client.submit(statement.bytes()).await.unwrap();
    }

    /// Hands in a statement that the policy refuses.
    pub async fn refused(&self, statement: &SignedStatement) {
        self.client.submit(statement.bytes()).await.unwrap_err();
    }
}
