//! A real log on a socket, in a folder of its own, that can be stopped and started again at the same address.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use client::{Client, Options};
use gateway::decision_writer::LogConnection;
use scitt::{CoseKey, Signer, SigningKey};
use tempfile::TempDir;
use transparency::{AccessConfig, ClosedTypes, Config, Limits, Rate, Service};
use verifier::{TrustStore, TrustedLog};

/// A log's folder, its address, and the service while it runs.
pub struct Site {
    folder: TempDir,
    port: u16,
    service: Option<Service>,
}

impl Site {
    /// A log that knows the gateway, running.
    pub async fn start() -> Self {
        Self::with(&policy(), Limits::default()).await
    }

    /// The same under another policy or other limits.
    pub async fn with(policy: &str, limits: Limits) -> Self {
        let mut site = Self::stopped_under(policy);
        site.go_on_with(limits).await;
        site
    }

    /// A log that knows the gateway, and does not run yet.
    pub fn stopped() -> Self {
        Self::stopped_under(&policy())
    }

    /// A log that does not run yet, at an address that is free.
    pub fn stopped_under(policy: &str) -> Self {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let site = Self { folder: tempfile::tempdir().unwrap(), port, service: None };
        testkit::write_log_files(site.folder.path(), policy);
        site
    }

    /// Runs, at the address that it always had.
    pub async fn go_on(&mut self) {
        self.go_on_with(Limits::default()).await;
    }

    async fn go_on_with(&mut self, limits: Limits) {
        let config = Config {
            public_url: self.url(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            // These tests read what the gateway registered, as an auditor would.
            access: AccessConfig { closed_types: ClosedTypes(Vec::new()), ..AccessConfig::default() },
            limits: Limits { writes: Rate::per_second(10_000, 10_000), ..limits },
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

    /// The log as a gateway is told of it.
    pub fn log(&self) -> LogConnection {
        let options = Options { patience: Duration::from_secs(1), ..Options::default() };
        LogConnection { url: self.url(), client: self.client_with(options), trust: Some(self.trust()) }
    }

    pub fn client(&self) -> Client {
        self.client_with(Options::default())
    }

    fn client_with(&self, options: Options) -> Client {
        Client::new(&self.url(), options).unwrap()
    }

    /// What the log's receipts are verified with.
    pub fn trust(&self) -> TrustStore {
        let pem = fs::read_to_string(self.path("receipt.pem")).unwrap();
        let key = SigningKey::from_pkcs8_pem(&pem).unwrap().public_key().clone();
        let mut trust = TrustStore::default();
        let key = CoseKey::bare(key);
        trust.put_log(TrustedLog::new(testkit::LOG_ISS, testkit::ORIGIN, vec![key]));
        trust
    }

    /// How many leaves it has.
    pub async fn size(&self) -> u64 {
        let checkpoint = self.client().bytes("checkpoint").await.unwrap();
        let text = String::from_utf8(checkpoint.to_vec()).unwrap();
        text.lines().nth(1).unwrap().parse().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A policy that admits the gateway's records, under the name that its key really has.
pub fn policy() -> String {
    let key = testkit::gateway();
    let did = key.public_key().did_key();
    let before =
        format!("iss = \"{}\"\nkeys = [{{ key = \"{did}\", kid = \"{}\" }}]", testkit::GATEWAY, testkit::KID);
    let policy = testkit::policy_toml();
    assert!(policy.contains(&before), "the policy of the test kit binds the gateway");
    policy.replace(&before, &format!("iss = \"{}\"\nkeys = [\"{did}\"]", testkit::GATEWAY))
}
