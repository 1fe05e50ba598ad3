//! `tabellion serve --dev`: a log for experiments, with all its files in one disposable folder.
//!
//! The folder contains keys, policy, trust, database, pin and samples. A second start continues with them. Two
//! shortcuts are acceptable only for experiments: the pin is stored next to the database that it guards, and the
//! issuer's key next to the log's keys.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use client::{Client, Options};
use registration::aer::AerStatement;
use registration::conversation::AGENT_CONVERSATION;
use registration::policy::{self, Identity, Trusted};
use registration::vrf::VrfStatement;
use scitt::{Algorithm, CoseKey, PublicKey, SignedStatement, Signer, SigningKey, transparent};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store_sqlite::FileSystem;
use tlog::note::{LocalKey, NoteSigner};
use tlog::policy::{PolicyWitness, WitnessPolicy};
use transparency::{Config, Database, Service};
use verifier::{TrustStore, TrustedLog};

use crate::commands::statement::{self, Form, Terms};
use crate::commands::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::dev_files::{DEV_CONFIG, DEV_FOLDER, DEV_GATEWAY, DEV_ISSUER, DEV_KEY, DEV_URL};
use crate::keyfile::{self, KeyNames};
use crate::settings::without_password;
use crate::trust_file;

/// The origin of every dev log; dev logs differ only in their keys.
const ORIGIN: &str = "dev.tabellion.example";
/// The agent (`sub`) in the VRF sample.
const SAMPLE_AGENT: &str = "did:web:agent.dev.tabellion.example";

/// The keys in a prepared [`DEV_FOLDER`].
pub struct Dev {
    issuer: SigningKey,
    verifier: SigningKey,
    gateway: SigningKey,
    /// The keys that sign as the log itself: its operator's and that of its search index.
    own: [SigningKey; 2],
    any_filesystem: bool,
}

/// Creates the missing files in [`DEV_FOLDER`].
pub fn prepare(context: &Context) -> Result<Dev, Failure> {
    let fresh = !Path::new(DEV_FOLDER).exists();
    fs::create_dir_all(format!("{DEV_FOLDER}/samples"))?;
    key("receipt.key", Algorithm::Es256)?;
    key("checkpoint.key", Algorithm::EdDsa)?;
    let operator = key("operator.key", Algorithm::Es256)?;
    let index = key("index.key", Algorithm::Es256)?;
    let issuer = key("issuer.key", Algorithm::Es256)?;
    let verifier = key("verifier.key", Algorithm::EdDsa)?;
    let gateway = key("gateway.key", Algorithm::EdDsa)?;
    let iss = format!("https://{ORIGIN}");
    let log =
        Identity { iss: &iss, origin: ORIGIN, operator: operator.public_key(), index: index.public_key() };
    if !at("policy.toml").exists() {
        let trusted = Trusted { iss: DEV_ISSUER, key: issuer.public_key() };
        let text = policy::for_dev(log, trusted, Trusted { iss: DEV_GATEWAY, key: gateway.public_key() });
        files::write(&at("policy.toml"), text.as_bytes(), Access::Ordinary, Existing::Keep)?;
    }
    // Overlay file systems of containers are accepted for experiments.
    let any_filesystem = matches!(FileSystem::of_folder(Path::new(DEV_FOLDER)), Ok(FileSystem::Shared(_)));
    if fresh {
        context.console.note(format!("made       ./{DEV_FOLDER}"));
    }
    Ok(Dev { issuer, verifier, gateway, own: [operator, index], any_filesystem })
}

impl Dev {
    /// Returns the settings of `serve --dev`, which flags override.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| at(name).display().to_string();
        vec![
            ("origin", ORIGIN.into()),
            ("iss", format!("https://{ORIGIN}")),
            ("public_url", "http://127.0.0.1:0".into()),
            ("db", format!("sqlite:{}", file("log.db"))),
            ("any_filesystem", self.any_filesystem.to_string()),
            ("state_dir", DEV_FOLDER.into()),
            ("policy", file("policy.toml")),
            ("receipt_key", file("receipt.key")),
            ("checkpoint_key", file("checkpoint.key")),
            ("operator_key", file("operator.key")),
            ("index_key", file("index.key")),
            ("receipt_alg", "ES256".into()),
            ("closed_content_types", "[]".into()),
            ("cors_origins", "[\"*\"]".into()),
            ("log_level", "warn".into()),
        ]
    }

    /// Writes the effective configuration to [`DEV_CONFIG`], readable by its owner only, because the database's URL may
    /// contain a password.
    pub fn write_config(&self, config: &Config) -> Result<(), Failure> {
        let file = |path: &Path| Ok::<_, Failure>(std::path::absolute(path)?.display().to_string());
        let database = match &config.database {
            Database::Sqlite { path, .. } => format!("sqlite:{}", file(path)?),
            Database::Postgres(url) => url.expose_secret().to_owned(),
        };
        let mut settings = toml::Table::new();
        let mut set = |key: &str, value: toml::Value| settings.insert(key.to_owned(), value);
        set("origin", config.origin.clone().into());
        set("iss", config.iss.clone().into());
        set("public_url", config.public_url.clone().into());
        set("db", database.into());
        set("any_filesystem", self.any_filesystem.into());
        set("state_dir", file(&config.state_dir)?.into());
        set("policy", file(&config.policy)?.into());
        set("receipt_key", file(&config.keys.receipt)?.into());
        set("checkpoint_key", file(&config.keys.checkpoint)?.into());
        set("operator_key", file(&at("operator.key"))?.into());
        set("index_key", file(&at("index.key"))?.into());
        if let Some(pin) = &config.pin {
            set("pin", pin.expose_secret().into());
        }
        let text = format!(
            "# The log that `tabellion serve --dev` serves here. Written anew at every start.\n{settings}"
        );
        files::write(Path::new(DEV_CONFIG), text.as_bytes(), Access::Secret, Existing::Replace)
    }

    /// Writes the trust file and the monitor's configuration, registers the samples as a client, and prints an
    /// introduction.
    pub async fn introduce(
        &self,
        context: &Context,
        service: &Service,
        config: &Config,
    ) -> Result<(), Failure> {
        let witnesses = config.witnesses.policy.as_ref().map_or(&[][..], WitnessPolicy::witnesses);
        let tokens = &config.access.tokens;
        // A token without restrictions is preferred, because the samples have several issuers and types.
        let unbound = tokens.iter().find(|token| {
            token.expires.is_none() && token.scope.issuers.is_empty() && token.scope.content_types.is_empty()
        });
        let token = unbound.or(tokens.first()).map(|token| token.secret.expose_secret().to_owned());
        let options = Options { token, ..Options::default() };
        let client = Client::new(&format!("http://{}", service.addresses().public), options)?;
        let trust = self.trust(&client).await?;
        files::write(
            Path::new(trust_file::DEV),
            trust.to_toml().as_bytes(),
            Access::Ordinary,
            Existing::Replace,
        )?;
        let url = format!("{}\n", service.identity().public_url);
        files::write(Path::new(DEV_URL), url.as_bytes(), Access::Ordinary, Existing::Replace)?;
        let watched = watched(&service.identity().public_url, witnesses)?;
        files::write(&at("monitor.toml"), watched.as_bytes(), Access::Ordinary, Existing::Replace)?;
        let mut samples = Vec::new();
        for (name, statement) in self.samples()? {
            samples.push(register(&client, &trust, name, &statement).await?);
        }
        context.console.result(&Banner::of(service, config, &trust, samples))
    }

    async fn trust(&self, client: &Client) -> Result<TrustStore, Failure> {
        let keys = client.keys().await?.keys().to_vec();
        let mut trust = TrustStore { self_certified: true, ..TrustStore::default() };
        let iss = format!("https://{ORIGIN}");
        let mut log = TrustedLog::new(iss.clone(), ORIGIN, keys);
        log.checkpoint_keys = vec![checkpoint_key()?];
        trust.put_log(log);
        trust.add_issuer_key(DEV_ISSUER, bare(self.issuer.public_key()));
        trust.add_issuer_key(DEV_GATEWAY, bare(self.gateway.public_key()));
        // For the policies, and the heads of the index, that the log itself signs.
        for key in &self.own {
            trust.add_issuer_key(&iss, bare(key.public_key()));
        }
        Ok(trust)
    }

    /// Returns a statement of each supported content type. They are stored, so that a restart finds the same entries.
    fn samples(&self) -> Result<Vec<(&'static str, SignedStatement)>, Failure> {
        Ok(vec![
            ("opaque", kept("opaque", || self.opaque())?),
            ("vrf", kept("vrf", || self.vrf())?),
            ("vap-audit", kept("vap-audit", || self.vap_audit())?),
            ("aer", kept("aer", || self.aer())?),
            ("conversation", kept("conversation", || self.conversation())?),
        ])
    }

    fn opaque(&self) -> Result<SignedStatement, Failure> {
        let payload =
            json!({ "action": "deploy", "verdict": "allow", "note": "a sample of an opaque statement" });
        let terms = Terms { iss: DEV_ISSUER, sub: "sample", content_type: "application/json" };
        statement::sign(&self.issuer, jose::jcs::canonical(&payload), &terms, Form::Attached)
    }

    /// The first record of a gateway's session: a denied call, which needs no outcome record.
    fn vap_audit(&self) -> Result<SignedStatement, Failure> {
        let session = uuid::Uuid::new_v4().to_string();
        let terms = Terms { iss: DEV_ISSUER, sub: &session, content_type: vap::audit::VAP_AUDIT };
        let payload = jose::jcs::canonical(&sample_decision(&session));
        statement::sign(&self.issuer, payload, &terms, Form::Attached)
    }

    /// A permitted call; the gateway's name is its `did:key`.
    fn aer(&self) -> Result<SignedStatement, Failure> {
        let receipt = sample_execution(&self.gateway.public_key().did_key());
        let signed = AerStatement::new(receipt).sign(&self.gateway);
        signed.map_err(keyfile::cannot_sign)
    }

    /// A session of one question, one tool call and one answer.
    fn conversation(&self) -> Result<SignedStatement, Failure> {
        let session = uuid::Uuid::new_v4().to_string();
        let terms = Terms { iss: DEV_ISSUER, sub: &session, content_type: AGENT_CONVERSATION };
        let payload = jose::jcs::canonical(&sample_conversation(&session));
        statement::sign(&self.issuer, payload, &terms, Form::Attached)
    }

    fn vrf(&self) -> Result<SignedStatement, Failure> {
        let signed = VrfStatement::new(sample_receipt(), SAMPLE_AGENT).sign(&self.verifier);
        signed.map_err(keyfile::cannot_sign)
    }
}

/// Returns the configuration of `tabellion monitor` for this log.
fn watched(url: &str, witnesses: &[PolicyWitness]) -> Result<String, Failure> {
    let key = checkpoint_key()?;
    let witnesses: Vec<String> = witnesses.iter().map(|witness| format!("\"{}\"", witness.key)).collect();
    Ok(format!(
        "# The configuration of `tabellion monitor` for this log. Overwritten at every start.\n\
         state_dir = \"monitor\"\n\n[[log]]\nname = \"dev\"\nurl = \"{url}\"\nvkey = \"{key}\"\n\
         witnesses = [{}]\n",
        witnesses.join(", ")
    ))
}

/// Returns the log's verifier key for checkpoints, from the local file `checkpoint.key` instead of the service.
fn checkpoint_key() -> Result<String, Failure> {
    let pem = files::read_text(&at("checkpoint.key"))?;
    let key = ORIGIN.parse().ok().and_then(|name| LocalKey::from_pkcs8_pem(name, &pem).ok());
    key.map(|key| key.key().to_string())
        .ok_or_else(|| Failure::new(Exit::Failure, "key-unusable", "checkpoint.key signs no checkpoints"))
}

fn now_text() -> String {
    jiff::Timestamp::from_second(i64::try_from(now()).unwrap_or_default()).unwrap_or_default().to_string()
}

fn sample_decision(session: &str) -> Json {
    json!({
        "version": "1",
        "kind": "decision",
        "gateway": DEV_ISSUER,
        "stream": session,
        "seq": 0,
        "at": now_text(),
        "agent_id": SAMPLE_AGENT,
        "tool": "delete_repository",
        "verdict": "denied",
        "verification": { "checks": ["scope_exceeded"], "method": "static", "reason": "tool_not_allowed" },
        "policy_digest": format!("sha256:{}", merkle::EntryDigest::of(b"a sample policy")),
        "meters": { "calls": "0" },
        "committed": {}
    })
}

fn sample_receipt() -> Json {
    json!({
        "vrf_version": "1.0",
        "receipt_id": uuid::Uuid::new_v4().to_string(),
        "verified_at": now_text(),
        "tier": 0,
        "verdict": "pass",
        "task": { "task_type": "code_generation", "description": "a sample: a sort function" },
        "results": { "total": 2, "passed": 2, "failed": 0, "errors": 0 },
        "hashes": { "output": format!("sha256:{}", merkle::EntryDigest::of(b"def f(x): return sorted(x)\n")) },
        "metadata": { "structural": true, "verifier": "tabellion-dev" }
    })
}

fn sample_execution(gateway: &str) -> Json {
    let digest = |bytes: &[u8]| format!("sha256:{}", merkle::EntryDigest::of(bytes));
    json!({
        "schema_version": "1.0",
        "aer_id": format!("aer:{}", &uuid::Uuid::new_v4().simple().to_string()[16..]),
        "produced_at": now_text(),
        "enforcement_outcome": "permit",
        "enforcement_mode": "normal",
        "session": { "session_id": "sample", "agent_id": "aha:dev/samples/agent-1" },
        "action": {
            "capability": "mcp:tests.run",
            "mcp_server_id": "tests",
            "mcp_tool_name": "run",
            "input_hash": digest(b"{}"),
        },
        "policy": { "policy_id": "samples", "policy_digest": digest(b"a sample of a policy") },
        "chain_summary": {
            "chain_depth": 0,
            "root_envelope_id": "env:5a5a5a5a5a5a5a5a",
            "chain_digest": digest(b"a sample of a chain"),
        },
        "border_gateway": { "gateway_id": gateway, "gateway_version": "tabellion-dev" }
    })
}

fn sample_conversation(session: &str) -> Json {
    json!({
        "version": "3.0.0-draft",
        "id": uuid::Uuid::new_v4().to_string(),
        "created": now_text(),
        "session": {
            "session-id": session,
            "session-start": now_text(),
            "agent-meta": { "model-id": "sample-model", "model-provider": "sample", "cli-name": "tabellion-dev" },
            "entries": [
                { "type": "user", "id": "1", "content": "do the tests pass?" },
                { "type": "tool-call", "id": "2", "call-id": "call-1", "name": "run_tests", "input": {} },
                { "type": "tool-result", "id": "3", "call-id": "call-1", "output": "2 passed", "is-error": false },
                { "type": "assistant", "id": "4", "parent-id": "1", "content": "both do" }
            ]
        },
        "recording-agent": { "name": "tabellion-dev" }
    })
}

fn kept(
    name: &str,
    make: impl FnOnce() -> Result<SignedStatement, Failure>,
) -> Result<SignedStatement, Failure> {
    let file = at(&format!("samples/{name}.cose"));
    if file.exists() {
        return statement::read(&file);
    }
    let statement = make()?;
    files::write(&file, statement.bytes(), Access::Ordinary, Existing::Keep)?;
    Ok(statement)
}

async fn register(
    client: &Client,
    trust: &TrustStore,
    name: &str,
    statement: &SignedStatement,
) -> Result<Sample, Failure> {
    let registered = client.register(statement, trust, now()).await?;
    let malformed = |error: scitt::Malformed| Failure::new(Exit::Failure, "malformed", error.to_string());
    let whole = transparent::attach(statement.bytes(), &[&registered.receipt]).map_err(malformed)?;
    let file = at(&format!("samples/{name}.transparent.cose"));
    files::write(&file, &whole, Access::Ordinary, Existing::Replace)?;
    let position = registered.verdict.receipts.first().and_then(|receipt| receipt.position);
    Ok(Sample {
        name: name.to_owned(),
        entry: statement.digest().to_string(),
        leaf_index: position.map_or(0, |position| position.leaf_index.get()),
        file: file.display().to_string(),
    })
}

fn key(name: &str, algorithm: Algorithm) -> Result<SigningKey, Failure> {
    let path = at(name);
    if path.exists() { keyfile::read(&path) } else { keyfile::generate(&path, algorithm) }
}

fn at(name: &str) -> PathBuf {
    Path::new(DEV_FOLDER).join(name)
}

fn bare(key: &PublicKey) -> CoseKey {
    CoseKey::bare(key.clone())
}

#[derive(Serialize)]
struct Sample {
    name: String,
    entry: String,
    leaf_index: u64,
    file: String,
}

#[derive(Serialize)]
struct Banner {
    url: String,
    listen: String,
    admin: Option<String>,
    origin: String,
    folder: &'static str,
    storage: String,
    token_required: bool,
    issuer: &'static str,
    trust: &'static str,
    receipt_alg: &'static str,
    receipt_kid: String,
    witnesses: usize,
    policy_entry: Option<String>,
    samples: Vec<Sample>,
}

impl Banner {
    fn of(service: &Service, config: &Config, trust: &TrustStore, samples: Vec<Sample>) -> Self {
        let (addresses, identity) = (service.addresses(), service.identity());
        let kid =
            trust.logs.first().and_then(|log| log.keys.last()).map(|key| KeyNames::of(&key.key, None).kid);
        Self {
            url: identity.public_url.clone(),
            listen: addresses.public.to_string(),
            admin: addresses.admin.map(|admin| admin.to_string()),
            origin: identity.origin.clone(),
            folder: DEV_FOLDER,
            storage: storage(&config.database),
            token_required: config.access.token_required,
            issuer: DEV_ISSUER,
            trust: trust_file::DEV,
            receipt_alg: identity.receipt_algorithm,
            receipt_kid: kid.unwrap_or_default(),
            witnesses: config.witnesses.policy.as_ref().map_or(0, |policy| policy.witnesses().len()),
            policy_entry: service.policy().map(|policy| policy.entry.to_string()),
            samples,
        }
    }
}

/// Describes the log's storage, and the steps to start over.
fn storage(database: &Database) -> String {
    match database {
        Database::Sqlite { path, .. } if path.starts_with(DEV_FOLDER) => {
            format!("SQLite, ./{DEV_FOLDER} (delete the folder to start over)")
        }
        Database::Sqlite { path, .. } => format!(
            "SQLite, {}; keys, policy and pin in ./{DEV_FOLDER} (delete both to start over)",
            path.display()
        ),
        Database::Postgres(url) => format!(
            "PostgreSQL, {}; keys, policy and pin in ./{DEV_FOLDER} (drop the database and delete the folder to start over)",
            without_password(url.expose_secret())
        ),
    }
}

impl Report for Banner {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Transparency service (dev)   {}   API {}/docs", self.url, self.url)?;
        writeln!(out, "  explorer   {}/ui", self.url)?;
        writeln!(out, "  storage    {}", safe(&self.storage))?;
        writeln!(out, "  issuer     {}, key ./{DEV_KEY} (trusted by this service only)", self.issuer)?;
        writeln!(out, "  trust      ./{} (used by `tabellion verify` in this folder)", self.trust)?;
        writeln!(out, "  receipts   {}, kid {}", self.receipt_alg, self.receipt_kid)?;
        match self.witnesses {
            0 => writeln!(out, "  witnesses  none yet: tabellion help watching")?,
            count => writeln!(out, "  witnesses  {count}: tabellion witness status")?,
        }
        if let Some(entry) = &self.policy_entry {
            writeln!(out, "  policy     entry {entry}")?;
        }
        if let Some(admin) = &self.admin {
            writeln!(out, "  health     http://{admin}/readyz, metrics http://{admin}/metrics")?;
        }
        let auth = if self.token_required { "" } else { " no auth," };
        writeln!(out, "  warning    dev mode: no TLS,{auth} loopback only. Not for production.")?;
        writeln!(out)?;
        for sample in &self.samples {
            writeln!(
                out,
                "  sample     {:12} leaf {}, registered and verified: {}",
                sample.name, sample.leaf_index, sample.file
            )?;
        }
        writeln!(out)?;
        writeln!(out, "  try        echo '{{\"action\":\"deploy\",\"verdict\":\"allow\"}}' > hello.json")?;
        writeln!(out, "             tabellion register --dev hello.json")?;
        writeln!(out, "             tabellion verify hello.json.transparent.cose")
    }
}
