//! A log that answers as a test decides, over real HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, Response};
use bytes::Bytes;
use merkle::{LeafIndex, RootHash, TreeSize};
use scitt::{Algorithm, ReceiptHeader, Signer, SigningKey};
use tokio::net::TcpListener;

/// What the log is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    method: Method,
    path: String,
    body: Bytes,
}

impl Asked {
    pub fn is_batch(&self) -> bool {
        self.path.ends_with("/batch")
    }

    /// The number of the statement that is posted by itself.
    pub fn statement(&self) -> Option<u64> {
        if self.path != "/entries" {
            return None;
        }
        std::str::from_utf8(&self.body).unwrap().strip_prefix("statement ")?.parse().ok()
    }

    fn line(&self) -> String {
        let what = self.statement().map_or(self.path.clone(), |n| format!("statement {n}"));
        format!("{} {what}", self.method)
    }
}

/// An answer of the log.
#[derive(Debug)]
pub enum Answer {
    After(Duration, Response<Body>),
    Never,
}

impl Answer {
    pub fn after(self, wait: Duration) -> Self {
        match self {
            Self::After(_, response) => Self::After(wait, response),
            Self::Never => Self::Never,
        }
    }

    pub fn with_status(mut self, status: u16) -> Self {
        if let Self::After(_, response) = &mut self {
            *response.status_mut() = status.try_into().unwrap();
        }
        self
    }
}

/// The log, until the test ends.
pub struct ScriptedLog {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedLog {
    pub async fn start(answer: impl Fn(&Asked) -> Answer + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        let routes = Router::new().fallback(move |request: Request| {
            let (answer, seen) = (answer.clone(), seen.clone());
            async move {
                let (head, body) = request.into_parts();
                let (method, path) = (head.method, head.uri.path().to_owned());
                let asked = Asked { method, path, body: to_bytes(body, 1 << 20).await.unwrap() };
                seen.lock().unwrap().push(asked.line());
                match answer(&asked) {
                    Answer::After(wait, response) => {
                        tokio::time::sleep(wait).await;
                        response
                    }
                    Answer::Never => std::future::pending().await,
                }
            }
        });
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, requests }
    }

    /// The requests so far, a line for each.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// The bytes of a statement.
pub fn statement(n: u64) -> Bytes {
    Bytes::from(format!("statement {n}"))
}

/// A page without problem details, as from a proxy.
pub fn page(status: u16) -> Answer {
    let page = Response::builder().status(status).header("content-type", "text/html").body("<html>".into());
    Answer::After(Duration::ZERO, page.unwrap())
}

/// 201 with a receipt of the first leaf.
pub fn receipt() -> Answer {
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let header = ReceiptHeader {
        alg: key.algorithm(),
        kid: b"kid".to_vec(),
        iss: "https://log.example".into(),
        sub: "log.example".into(),
        iat: 1_700_000_000,
        tree_size: TreeSize::new(1),
    };
    let root = header.sign_root(&key, &RootHash::from_bytes([9; 32])).unwrap();
    let receipt = root.inclusion_receipt(LeafIndex::new(0), &[]);
    let response = Response::builder().status(201).header("location", "/entries/x").body(receipt.into());
    Answer::After(Duration::ZERO, response.unwrap())
}

/// 202: the receipt will be at the address of the statement.
pub fn accepted(n: u64) -> Answer {
    let response = Response::builder().status(202).header("location", format!("/entries/{n}"));
    Answer::After(Duration::ZERO, response.header("retry-after", "0").body(Body::empty()).unwrap())
}

/// The answer to a batch with one statement.
pub fn result_of_batch(result: &str) -> Answer {
    let body = format!("{{\"results\":[{result}]}}");
    let response = Response::builder().header("content-type", "application/json").body(body.into());
    Answer::After(Duration::ZERO, response.unwrap())
}
