//! A log with all its files in one folder, and a service that runs it in the process of a test.
//!
//! A development dependency of the services. Not here: the program as a process of its own (`black-box`).
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use client::{Client, Options};
use scitt::{Algorithm, CoseKey, Signer, SigningKey};
use serving::problem::ErrorDocumentation;
use tempfile::TempDir;
use testkit::{LOG_ISS, ORIGIN};
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use transparency::{
    AccessConfig, ClosedTypes, Config, Database, Limits, Rate, ReceiptAlgorithm, Service, SigningKeyFiles,
    WitnessConfig,
};
use verifier::{TrustStore, TrustedLog};

/// The folder of a log, which outlives the services that run it: the keys `receipt.pem`, `checkpoint.pem` and
/// `operator.pem`, `policy.toml`, and later the database `log.sqlite` and the state in `state`.
pub struct LogFolder(TempDir);

impl LogFolder {
    /// Creates a folder with fresh keys of a log, the operator's key of the test kit, and this policy.
    pub fn new(policy: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let generate = |algorithm| SigningKey::generate(algorithm).unwrap();
        folder.write_key("receipt.pem", &generate(Algorithm::Es256));
        folder.write_key("checkpoint.pem", &generate(Algorithm::EdDsa));
        folder.write_key("operator.pem", &testkit::operator());
        folder.write_policy(policy);
        folder
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a key that only its owner may read.
    pub fn write_key(&self, name: &str, key: &SigningKey) {
        self.write_private(name, &key.to_pkcs8_pem().unwrap());
    }

    /// Writes a file that only its owner may read.
    pub fn write_private(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Replaces the policy.
    pub fn write_policy(&self, toml: &str) {
        fs::write(self.path("policy.toml"), toml).unwrap();
    }

    /// Returns a configuration on SQLite with default bounds, but for a rate of writes that no test reaches by accident. It
    /// listens at a free port of 127.0.0.1, and the operator's commands have no listener.
    pub fn config(&self) -> Config {
        Config {
            origin: ORIGIN.to_owned(),
            iss: LOG_ISS.to_owned(),
            public_url: "http://127.0.0.1:0".to_owned(),
            database: Database::Sqlite { path: self.path("log.sqlite"), any_filesystem: false },
            migrate: true,
            state_dir: self.path("state"),
            pin: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            admin_listen: None,
            admin_socket: None,
            tls: None,
            plaintext: false,
            keys: SigningKeyFiles {
                receipt: self.path("receipt.pem"),
                checkpoint: self.path("checkpoint.pem"),
                index: None,
                operator: Some(self.path("operator.pem")),
            },
            receipt_algorithm: ReceiptAlgorithm::default(),
            policy: self.path("policy.toml"),
            access: AccessConfig::default(),
            witnesses: WitnessConfig::default(),
            limits: with_many_writes(Limits::default()),
            error_documentation: ErrorDocumentation::default(),
        }
    }

    /// Returns the checkpoint key, as witnesses and monitors know it.
    pub fn checkpoint_key(&self) -> VerifierKey {
        let pem = fs::read_to_string(self.path("checkpoint.pem")).unwrap();
        LocalKey::from_pkcs8_pem(ORIGIN.parse().unwrap(), &pem).unwrap().key().clone()
    }

    /// Returns a trust store with the log's receipt key.
    pub fn trust(&self) -> TrustStore {
        let pem = fs::read_to_string(self.path("receipt.pem")).unwrap();
        let key = SigningKey::from_pkcs8_pem(&pem).unwrap().public_key().clone();
        let mut trust = TrustStore::default();
        trust.put_log(TrustedLog::new(LOG_ISS, ORIGIN, vec![CoseKey::bare(key)]));
        trust
    }
}

fn with_many_writes(limits: Limits) -> Limits {
    Limits { writes: Rate::per_second(10_000, 10_000), ..limits }
}

/// A log that can be stopped and started again at the same address. It serves all payloads to everyone, as an auditor
/// would read them.
pub struct LocalLog {
    folder: LogFolder,
    port: u16,
    service: Option<Service>,
}

impl LocalLog {
    /// Creates a log that does not run yet, at an address that is free.
    pub fn stopped(policy: &str) -> Self {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        Self { folder: LogFolder::new(policy), port, service: None }
    }

    /// Starts the service, at the address that the log always had.
    pub async fn go_on(&mut self) {
        self.go_on_with(Limits::default()).await;
    }

    /// Starts the service with these limits, but for the rate of writes.
    pub async fn go_on_with(&mut self, limits: Limits) {
        let config = Config {
            public_url: self.url(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            access: AccessConfig { closed_types: ClosedTypes(Vec::new()), ..AccessConfig::default() },
            limits: with_many_writes(limits),
            ..self.folder.config()
        };
        self.service = Some(Service::start(config).await.unwrap());
    }

    /// Stops the service; what the log holds stays.
    pub async fn stop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop().await;
        }
    }

    /// Returns the address of the log.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns a client of the log.
    pub fn client(&self) -> Client {
        self.client_with(Options::default())
    }

    /// Returns a client with these options.
    pub fn client_with(&self, options: Options) -> Client {
        Client::new(&self.url(), options).unwrap()
    }

    /// Returns a trust store with the log's receipt key.
    pub fn trust(&self) -> TrustStore {
        self.folder.trust()
    }
}
