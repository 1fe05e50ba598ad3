//! A real log on a socket, in a folder of its own, that can be stopped and started again at the same address.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use client::{Client, Options};
use scitt::{CoseKey, Signer, SigningKey};
use serde_json::Value;
use tempfile::TempDir;
use transparency::{AccessConfig, ClosedTypes, Config, Limits, Rate, Service};
use verifier::{TrustStore, TrustedLog};

/// A log's folder, its address, and the service while it runs.
pub struct Log {
    folder: TempDir,
    port: u16,
    service: Option<Service>,
}

impl Log {
    /// A log that does not run yet, at an address that is free.
    pub fn stopped() -> Self {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let log = Self { folder: tempfile::tempdir().unwrap(), port, service: None };
        testkit::write_log_files(log.folder.path(), &testkit::policy_toml());
        log
    }

    /// A log that runs.
    pub async fn start() -> Self {
        let mut log = Self::stopped();
        log.go_on().await;
        log
    }

    /// Runs, at the address that it always had.
    pub async fn go_on(&mut self) {
        let config = Config {
            public_url: self.url(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            // These tests read what was registered, as an auditor would.
            access: AccessConfig { closed_types: ClosedTypes(Vec::new()), ..AccessConfig::default() },
            limits: Limits { writes: Rate::per_second(10_000, 10_000), ..Limits::default() },
            ..Config::in_folder(self.folder.path(), testkit::ORIGIN, testkit::LOG_ISS)
        };
        self.service = Some(Service::start(config).await.unwrap());
    }

    /// Stops; what it holds stays.
    pub async fn stop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop().await;
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn client(&self) -> Client {
        Client::new(&self.url(), Options::default()).unwrap()
    }

    /// The chain of receipts, as the log lists it.
    pub async fn chain(&self, issuer: &str, subject: &str) -> Value {
        self.client().json(&format!("v1/issuers/{issuer}/chain?sub={subject}")).await.unwrap()
    }

    /// What the log's receipts are verified with.
    pub fn trust(&self) -> TrustStore {
        let pem = fs::read_to_string(self.path("receipt.pem")).unwrap();
        let key = SigningKey::from_pkcs8_pem(&pem).unwrap().public_key().clone();
        let mut trust = TrustStore { self_certified: true, ..TrustStore::default() };
        trust.put_log(TrustedLog::new(testkit::LOG_ISS, testkit::ORIGIN, vec![CoseKey::bare(key)]));
        trust
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
