//! A witness on a real socket that does what a test tells it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use merkle::{EntryDigest, TreeSize};
use scitt::{Algorithm, SigningKey};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature::cosign;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, Note, NoteSigner};
use tlog::policy::WitnessPolicy;
use tlog::witness::{AddCheckpoint, CosignRefusal, SIZE_TYPE, SeenTree, judge};
use tokio::task::JoinHandle;

/// How a witness answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As the specification says.
    Honest,
    /// 503.
    Busy,
    /// 404.
    KnowsNoLog,
    /// 409 with this size.
    Claims(u64),
    /// 422.
    Unproven,
    /// 200 with a line of some other key.
    SignsWithAnotherKey,
    /// 200 with its line among others.
    BesideStrangers,
    /// 200 with its line, signed an hour ahead.
    Ahead,
    /// 200 with something else than lines.
    Babbles,
    /// No answer.
    Hangs,
    /// 409 with this size, and what it shows never comes.
    ClaimsAndHides(u64),
    /// 409 with this size, once it becomes something else.
    ClaimsLater(u64),
}

/// A witness. Stops when dropped.
pub struct TestWitness {
    pub name: String,
    pub address: std::net::SocketAddr,
    pub key: VerifierKey,
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    signer: LocalKey,
    other: LocalKey,
    state: Mutex<Told>,
}

struct Told {
    manner: Manner,
    log: Option<VerifierKey>,
    seen: Option<SeenTree>,
    newest: Option<Note>,
    requests: Vec<AddCheckpoint>,
}

impl TestWitness {
    pub async fn start(name: &str) -> Self {
        let shared = Arc::new(Shared {
            signer: local_key(name),
            other: local_key(name),
            state: Mutex::new(Told {
                manner: Manner::Honest,
                log: None,
                seen: None,
                newest: None,
                requests: Vec::new(),
            }),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let key = shared.signer.key().clone();
        let task = Mutex::new(Some(serve(listener, shared.clone())));
        Self { name: name.into(), address, key, shared, task }
    }

    /// Its line in a policy.
    pub fn line(&self) -> String {
        format!("witness {} {} http://{}", self.name, self.key, self.address)
    }

    /// Believes only checkpoints of this key; any key before that.
    pub fn knows(&self, log: &str) {
        self.told().log = Some(log.parse().unwrap());
    }

    pub fn becomes(&self, manner: Manner) {
        self.told().manner = manner;
    }

    /// Shows this checkpoint with its cosignature, whatever it has seen.
    pub fn shows(&self, mut checkpoint: Note) {
        let line = cosign(&self.shared.signer, checkpoint.text(), unix_now()).unwrap();
        checkpoint.add(line).unwrap();
        self.told().newest = Some(checkpoint);
    }

    /// Has cosigned this checkpoint, which somebody else than the log has sent.
    pub fn has_cosigned(&self, checkpoint: Note) {
        let parsed = Checkpoint::parse_text(checkpoint.text()).unwrap();
        let mut told = self.told();
        told.seen = Some(SeenTree { size: parsed.size(), root: parsed.root() });
        told.newest = Some(checkpoint);
    }

    /// Nobody listens at its address any more.
    pub fn goes_away(&self) {
        if let Some(task) = self.task.lock().unwrap().take() {
            task.abort();
        }
    }

    /// The address is served again, as before.
    pub async fn comes_back(&self) {
        let listener = loop {
            match tokio::net::TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        *self.task.lock().unwrap() = Some(serve(listener, self.shared.clone()));
    }

    /// The largest size that it has cosigned.
    pub fn seen(&self) -> u64 {
        self.told().seen.map_or(0, |seen| seen.size.get())
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<AddCheckpoint> {
        self.told().requests.clone()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.shared.state.lock().unwrap()
    }
}

impl Drop for TestWitness {
    fn drop(&mut self) {
        self.goes_away();
    }
}

/// A policy of these witnesses; `rule` is the end of it.
pub fn policy(witnesses: &[&TestWitness], rule: &str) -> WitnessPolicy {
    let lines: Vec<String> = witnesses.iter().map(|witness| witness.line()).collect();
    format!("{}\n{rule}\n", lines.join("\n")).parse().unwrap()
}

/// A policy of which `k` of these must agree.
pub fn k_of(k: usize, witnesses: &[&TestWitness]) -> WitnessPolicy {
    let names: Vec<&str> = witnesses.iter().map(|witness| witness.name.as_str()).collect();
    policy(witnesses, &format!("group enough {k} {}\nquorum enough", names.join(" ")))
}

fn local_key(name: &str) -> LocalKey {
    let pem = SigningKey::generate(Algorithm::EdDsa).unwrap().to_pkcs8_pem().unwrap();
    LocalKey::cosigner_from_pkcs8_pem(format!("{name}.example").parse().unwrap(), &pem).unwrap()
}

/// Connections end with the task, or a witness that went away would still be spoken to.
fn serve(listener: tokio::net::TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    let routes = Router::new()
        .route("/add-checkpoint", post(add_checkpoint))
        .route("/{log}/checkpoint", get(latest))
        .with_state(shared);
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper_util::service::TowerToHyperService::new(routes.clone());
            let stream = hyper_util::rt::TokioIo::new(stream);
            connections.spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
            });
        }
    })
}

async fn latest(State(shared): State<Arc<Shared>>, Path(log): Path<String>) -> Response {
    let manner = shared.state.lock().unwrap().manner;
    if let Manner::Hangs | Manner::ClaimsAndHides(_) = manner {
        std::future::pending::<()>().await;
    }
    let told = shared.state.lock().unwrap();
    match &told.newest {
        Some(note) if log == EntryDigest::of(testkit::ORIGIN.as_bytes()).to_string() => {
            note.to_string().into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn add_checkpoint(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let request = AddCheckpoint::parse(&body).expect("a log sends requests that can be read");
    let manner = {
        let mut told = shared.state.lock().unwrap();
        told.requests.push(request.clone());
        told.manner
    };
    match manner {
        Manner::Hangs => std::future::pending().await,
        Manner::ClaimsLater(size) => {
            while shared.state.lock().unwrap().manner == manner {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            return conflict(size);
        }
        _ => {}
    }
    let mut told = shared.state.lock().unwrap();
    match told.manner {
        Manner::Honest | Manner::Hangs | Manner::ClaimsLater(_) => {}
        Manner::Busy => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Manner::KnowsNoLog => return StatusCode::NOT_FOUND.into_response(),
        Manner::Claims(size) | Manner::ClaimsAndHides(size) => return conflict(size),
        Manner::Unproven => return (StatusCode::UNPROCESSABLE_ENTITY, "no").into_response(),
        Manner::SignsWithAnotherKey => return line(&shared.other, &request).into_response(),
        Manner::BesideStrangers => {
            let strangers = [line(&local_key("stranger"), &request), line(&shared.signer, &request)];
            return strangers.concat().into_response();
        }
        Manner::Ahead => return line_at(&shared.signer, &request, unix_now() + 3600).into_response(),
        Manner::Babbles => return "well done\n".into_response(),
    }
    let log = told.log.clone().map_or_else(Vec::new, |log| vec![log]);
    match judge(told.seen, &request, &log) {
        Ok(checkpoint) => {
            told.seen = Some(SeenTree { size: checkpoint.size(), root: checkpoint.root() });
            told.newest = Some(request.checkpoint.clone());
            line(&shared.signer, &request).into_response()
        }
        Err(CosignRefusal::Seen(size)) => conflict(size.get()),
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.status()).unwrap();
            (status, refusal.to_string()).into_response()
        }
    }
}

fn conflict(size: u64) -> Response {
    (StatusCode::CONFLICT, [(CONTENT_TYPE, SIZE_TYPE)], format!("{}\n", TreeSize::new(size))).into_response()
}

fn line(signer: &LocalKey, request: &AddCheckpoint) -> String {
    line_at(signer, request, unix_now())
}

fn line_at(signer: &LocalKey, request: &AddCheckpoint, at: u64) -> String {
    cosign(signer, request.checkpoint.text(), at).unwrap().to_string()
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
