//! Our own service on a socket, in a folder of its own.
#![allow(dead_code)]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use client::{Client, Options};
use scitt::{Algorithm, SignedStatement, SigningKey};
use tempfile::TempDir;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use transparency::{
    AccessConfig, Config, Database, Limits, Rate, ReceiptAlgorithm, Service, SigningKeyFiles, WitnessConfig,
};

/// A folder with everything that a log is started with.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// Fresh keys, and this policy.
    pub fn new(policy: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (name, key) in [
            ("receipt.pem", SigningKey::generate(Algorithm::Es256).unwrap()),
            ("checkpoint.pem", SigningKey::generate(Algorithm::EdDsa).unwrap()),
            ("operator.pem", testkit::operator()),
        ] {
            fs::write(place.path(name), key.to_pkcs8_pem().unwrap()).unwrap();
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(place.path("policy.toml"), policy).unwrap();
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
            origin: testkit::ORIGIN.into(),
            iss: testkit::LOG_ISS.into(),
            public_url: "http://127.0.0.1:0".into(),
            database: Database::Sqlite { path: self.path("log.sqlite"), any_filesystem: false },
            pin: None,
            state_dir: self.path("state"),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            admin_listen: None,
            admin_socket: None,
            tls: None,
            migrate: true,
            plaintext: false,
            error_documentation: Default::default(),
            keys: SigningKeyFiles {
                receipt: self.path("receipt.pem"),
                checkpoint: self.path("checkpoint.pem"),
                index: None,
                operator: Some(self.path("operator.pem")),
            },
            receipt_algorithm: ReceiptAlgorithm::Es256,
            policy: self.path("policy.toml"),
            access: AccessConfig::default(),
            witnesses: WitnessConfig::default(),
            limits: Limits { writes: Rate::per_second(10_000, 10_000), ..Limits::default() },
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
