//! Our own service with a search index whose heads a test makes, right or wrong, and a proxy that proves searches by them.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use client::{Client, Options};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use log_for_tests::LogFolder;
use lookup_tree::{
    BlindCode, HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunId, RunProof, RunSummary,
    ScheduledRun, schedule,
};
use merkle::{CompactRange, EntryDigest, LeafIndex};
use monitor::clock::now;
use registration::policy::{IndexRules, index_table_digest};
use registration::{LookupKind, Policy, SearchValues, index_head};
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};
use verifier::index::{IndexHeadEvidence, SearchProof, SearchTerm};

use super::site::Site;

/// A log with an index, and what the proxy in front of it proves searches by.
pub struct IndexedSite {
    pub place: LogFolder,
    pub site: Site,
    pub client: Client,
    rules: IndexRules,
    key: SigningKey,
    /// Number of heads so far: each has its own interval.
    heads: Mutex<u64>,
    pub proven: Arc<Mutex<Option<ProvenIndex>>>,
    pub damage: Arc<Mutex<Option<Damage>>>,
}

/// Requests that begin so, and what the proxy makes of their answers.
pub type Damage = (&'static str, fn(Vec<u8>) -> Vec<u8>);

/// A head with all postings of its runs, as the log has it.
#[derive(Clone)]
pub struct ProvenIndex {
    pub statement: SignedStatement,
    pub head: IndexHead,
    pub postings: Vec<Posting>,
}

/// An entry as the log serves it.
pub struct Entry {
    pub digest: EntryDigest,
    pub statement: Option<SignedStatement>,
}

impl IndexedSite {
    pub async fn start() -> Self {
        let key = testkit::verifier();
        // Detached payloads are not kept: such an entry cannot be read in full.
        let policy =
            testkit::policy_toml().replace("detached = true", "detached = true\nkeep_payload = false");
        let mut document: toml::Table = toml::from_str(&policy).unwrap();
        let rules = json!({
            "table": format!("sha256:{}", index_table_digest()),
            "keys": [key.public_key().did_key()],
            "every": 1,
        });
        document.insert("index".to_owned(), toml::Value::try_from(rules).unwrap());
        let policy = document.to_string();
        let rules = Policy::from_toml(&policy).unwrap().contents().index.clone().unwrap();
        let place = LogFolder::new(&policy);
        let site = Site::start(&place).await;
        let client = Client::new(&site.url, Options::default()).unwrap();
        let (heads, proven, damage) = (Mutex::new(0), Arc::default(), Arc::default());
        let this = Self { place, site, client, rules, key, heads, proven, damage };
        std::fs::write(this.place.path("trust.toml"), this.place.trust().to_toml()).unwrap();
        this
    }

    /// Registers a statement whose payload the log does not serve.
    pub async fn register_unreadable(&self) {
        let payload = br#"{"action":"deploy"}"#;
        let statement = StatementBuilder::new(payload.to_vec())
            .content_type("application/json")
            .kid(testkit::KID.as_bytes())
            .iss(testkit::ISSUER)
            .sub("unreadable")
            .detached()
            .sign(&testkit::es256())
            .unwrap();
        let message = statement.bytes().clone();
        self.client
            .register_detached(&statement, &message, payload, &self.place.trust(), now())
            .await
            .unwrap();
    }

    /// Registers statements in batches.
    pub async fn register_many(&self, statements: &[SignedStatement]) {
        for batch in statements.chunks(client::BATCH_STATEMENTS) {
            let messages: Vec<Bytes> = batch.iter().map(|statement| statement.bytes().clone()).collect();
            for result in self.client.submit_batch(&messages).await.unwrap() {
                result.unwrap();
            }
        }
    }

    /// All entries of the log.
    pub async fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let path = format!("v1/evidence?from={}&limit=64", entries.len());
            let page: Value = self.client.json(&path).await.unwrap();
            let rows = page["evidence"].as_array().unwrap();
            entries.extend(rows.iter().map(entry));
            if rows.len() < 64 {
                return entries;
            }
        }
    }

    /// The right postings of all leaves.
    pub async fn postings(&self) -> Vec<Posting> {
        let of_leaf = |(leaf, entry): (usize, Entry)| {
            let leaf = LeafIndex::new(leaf as u64);
            match &entry.statement {
                Some(statement) => {
                    let keys = SearchValues::of_statement(statement, None).keys().into_iter();
                    keys.map(|key| Posting { key, leaf }).collect()
                }
                None => vec![Posting::blind(BlindCode::Erased, leaf)],
            }
        };
        let entries = self.entries().await.into_iter().enumerate();
        let postings: BTreeSet<Posting> = entries.flat_map(of_leaf).collect();
        postings.into_iter().collect()
    }

    /// The head over these postings.
    pub async fn head(&self, postings: &[Posting]) -> IndexHead {
        let mut tree = CompactRange::empty();
        self.entries().await.iter().for_each(|entry| tree.append(entry.digest.leaf_hash()));
        let run = |run: ScheduledRun| HeadRun { id: run.id, summary: summary(postings, &run) };
        IndexHead {
            series: self.rules.series(),
            size: tree.size(),
            log_root: tree.root(),
            horizon: tree.size().next_leaf(),
            runs: schedule(tree.size()).into_iter().map(run).collect(),
        }
    }

    /// Registers a head with the index key, through the ordinary API.
    pub async fn register(&self, head: &IndexHead) -> SignedStatement {
        let nth = {
            let mut heads = self.heads.lock().unwrap();
            *heads += 1;
            *heads
        };
        let log = (testkit::LOG_ISS, testkit::ORIGIN);
        let statement = index_head::sign(head, now() + nth, log, &self.rules, &self.key).unwrap();
        self.site.register(&statement).await;
        statement
    }

    /// Registers the head over these postings, by which searches are then proven.
    pub async fn commit(&self, postings: Vec<Posting>) -> IndexHead {
        let head = self.head(&postings).await;
        let statement = self.register(&head).await;
        *self.proven.lock().unwrap() = Some(ProvenIndex { statement, head: head.clone(), postings });
        head
    }

    /// Serves the log through a proxy, which proves searches.
    pub async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let proxy = Proxy {
            log: self.site.url.clone(),
            http: reqwest::Client::new(),
            client: Arc::new(Client::new(&self.site.url, Options::default()).unwrap()),
            proven: self.proven.clone(),
            damage: self.damage.clone(),
        };
        let app = axum::Router::new().fallback(answer).with_state(proxy);
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        url
    }
}

/// A run of these postings.
fn summary(postings: &[Posting], run: &ScheduledRun) -> RunSummary {
    RunSummary::of(&of_run(postings, run)).unwrap()
}

fn of_run(postings: &[Posting], run: &ScheduledRun) -> Vec<Posting> {
    postings.iter().filter(|posting| run.leaves.contains(posting.leaf)).copied().collect()
}

fn entry(row: &Value) -> Entry {
    let statement = row["statement"].as_str().map(|text| BASE64URL_NOPAD.decode(text.as_bytes()).unwrap());
    Entry {
        digest: row["entry_id"].as_str().unwrap().parse().unwrap(),
        statement: statement.map(|bytes| SignedStatement::parse(bytes).unwrap()),
    }
}

#[derive(Clone)]
struct Proxy {
    log: String,
    http: reqwest::Client,
    client: Arc<Client>,
    proven: Arc<Mutex<Option<ProvenIndex>>>,
    damage: Arc<Mutex<Option<Damage>>>,
}

async fn answer(State(proxy): State<Proxy>, uri: Uri, headers: HeaderMap) -> Response {
    let query = uri.query().unwrap_or_default();
    let proven = proxy.proven.lock().unwrap().clone();
    match (uri.path(), proven) {
        ("/v1/entries", Some(proven)) if query.contains("proof=1") => {
            let receipt = proxy.client.receipt(&proven.statement.digest()).await.unwrap();
            Json(proven.answer(query, receipt.to_vec())).into_response()
        }
        ("/v1/entries", None) if query.contains("proof=1") => StatusCode::NOT_FOUND.into_response(),
        _ => proxy.pass(&uri, &headers).await,
    }
}

impl Proxy {
    async fn pass(&self, uri: &Uri, headers: &HeaderMap) -> Response {
        let mut request = self.http.get(format!("{}{}", self.log, uri.to_string().trim_start_matches('/')));
        if let Some(accept) = headers.get(header::ACCEPT) {
            request = request.header(header::ACCEPT, accept);
        }
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body: Bytes = answer.bytes().await.unwrap();
        let damage = *self.damage.lock().unwrap();
        if let Some((_, damaged)) = damage.filter(|(path, _)| uri.to_string().starts_with(*path)) {
            body = damaged(body.to_vec()).into();
        }
        let kept = [header::CONTENT_TYPE, header::DATE];
        let kept = kept.into_iter().filter_map(|name| Some((name.clone(), headers.get(&name)?.clone())));
        (status, kept.collect::<HeaderMap>(), body).into_response()
    }
}

impl ProvenIndex {
    /// The page of a search for one term of one leaf, with its proof.
    fn answer(&self, query: &str, receipt: Vec<u8>) -> Value {
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let after = query.get("after").map_or(0, |after| after.parse::<u64>().unwrap() + 1);
        let leaves = LeafRange::new(after, query["before"].parse().unwrap());
        let (kind, name) = KINDS.into_iter().find(|(_, name)| query.contains_key(*name)).unwrap();
        let term = SearchTerm { kind: kind.number(), value: query[name].clone().into_bytes() };
        let question = IndexQuestion::new([term.key()], leaves).unwrap();
        let runs = self.head.scheduled_runs().unwrap();
        let proof = |(run, summary): &(ScheduledRun, RunSummary)| {
            let question = question.for_run(run, summary)?;
            let proof = RunProof::prove(&of_run(&self.postings, run)[..], &question).unwrap();
            Some((run.id, proof.encode()))
        };
        let proofs: BTreeMap<RunId, Vec<u8>> = runs.iter().filter_map(proof).collect();
        let statement = self.statement.bytes().to_vec();
        let head = IndexHeadEvidence { statement, receipt };
        let search = SearchProof { head, terms: vec![term], leaves, proofs };
        json!({ "entries": [], "proof": {
            "size": self.head.size.get(),
            "leaves": { "from": leaves.start.get(), "to": leaves.end.get() },
            "head_entry": self.statement.digest().to_string(),
            "file": BASE64.encode(&search.encode()),
        }})
    }
}

const KINDS: [(LookupKind, &str); 8] = [
    (LookupKind::Verdict, "verdict"),
    (LookupKind::Session, "session"),
    (LookupKind::PayloadDigest, "payload_digest"),
    (LookupKind::Digest, "digest"),
    (LookupKind::Issuer, "issuer"),
    (LookupKind::Subject, "subject"),
    (LookupKind::ContentType, "content_type"),
    (LookupKind::Agent, "agent"),
];
