//! A service with its folder and key, which can be stopped and started again.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use scitt::{Algorithm, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use verification::{ClientConfig, Config, LogConfig, VerificationService};
use verification_store::VerificationStore;

use crate::fake_runner::FakeRunner;

/// An address at which nothing listens.
pub const NO_LOG: &str = "http://127.0.0.1:9";
/// The agent whose work is checked.
pub const AGENT: &str = "did:web:agent.example";

/// A service and what outlives it.
pub struct Site {
    folder: TempDir,
    key: SigningKey,
    config: Config,
    pub runner: Arc<FakeRunner>,
    pub issuer: String,
    running: Option<(String, oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Site {
    /// A running service that registers at `log`, after `change` of its configuration.
    pub async fn start(log: &str, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        let log = LogConfig { url: log.into(), trust: None, token_file: None, ca_file: None };
        let (state, unused) = (folder.path().join("state"), folder.path().join("unused"));
        let mut config = Config::new("127.0.0.1:0".parse().unwrap(), state, unused, log);
        config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
        config.receipt_wait = Duration::from_millis(100);
        change(&mut config);
        let runner = Arc::new(FakeRunner::new());
        let mut site = Self { folder, key, config, runner, issuer: String::new(), running: None };
        site.go_on().await;
        site
    }

    /// Changes the configuration of the next start.
    pub fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
    }

    /// Starts the service again, with the state that it had.
    pub async fn go_on(&mut self) {
        let (config, runner) = (self.config.clone(), self.runner.clone());
        let service = VerificationService::start(config, self.key(), runner).await.unwrap();
        self.issuer = service.issuer().to_owned();
        let url = format!("http://{}", service.address());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(service.run_until(async {
            let _ = stopped.await;
        }));
        self.running = Some((url, stop, task));
    }

    /// Stops the service; its state stays.
    pub async fn stop(&mut self) {
        let (_, stop, task) = self.running.take().unwrap();
        stop.send(()).unwrap();
        task.await.unwrap();
    }

    /// The key that the service signs with.
    pub fn key(&self) -> SigningKey {
        SigningKey::from_pkcs8_pem(&self.key.to_pkcs8_pem().unwrap()).unwrap()
    }

    /// The database of a service that is stopped.
    pub async fn store(&self) -> VerificationStore {
        VerificationStore::open(&self.folder.path().join("state/verification.db")).await.unwrap()
    }

    /// Forgets the state, as after a restore without a backup.
    pub fn lose_state(&self) {
        std::fs::remove_dir_all(self.folder.path().join("state")).unwrap();
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.as_ref().unwrap().0)
    }

    pub async fn post(&self, token: Option<&str>, body: &Value) -> Response {
        let request = reqwest::Client::new().post(self.url("/verify")).json(body);
        let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap()
    }

    pub async fn get(&self, token: Option<&str>, path: &str) -> Response {
        let request = reqwest::Client::new().get(self.url(path));
        let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap()
    }

    /// Verifies a request that must be answered with a receipt.
    pub async fn verified(&self, body: &Value) -> Value {
        let answer = self.post(None, body).await;
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Repeats a request, which waits for its result each time, until the answer is as `fits` says.
    pub async fn answer_when(&self, body: &Value, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer: Value = self.post(None, body).await.json().await.unwrap();
            if fits(&answer) {
                return answer;
            }
        }
    }
}

/// A client with this token.
pub fn client(name: &str, token: &str, requests_per_minute: u32) -> ClientConfig {
    ClientConfig {
        name: name.into(),
        token_sha256: Sha256::digest(token.as_bytes()).into(),
        requests_per_minute: NonZeroU32::new(requests_per_minute).unwrap(),
        subject: None,
    }
}

/// A request about this work; `name` makes it another request.
pub fn request(work: &str, name: &str) -> Value {
    json!({
        "tier": 1,
        "task": { "task_id": name, "task_type": "testing" },
        "artifact": { "content": work },
        "schema": { "type": "string" },
    })
}

/// The same about work of [`AGENT`].
pub fn request_about_agent(work: &str, name: &str) -> Value {
    let mut request = request(work, name);
    request["subject"] = AGENT.into();
    request
}
