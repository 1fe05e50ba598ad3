//! `gateway run --dev`: no file, loopback only, one endpoint, and a name that `serve --dev` trusts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use admission::risk::Degree;
use admission::rules::Posture;
use admission::signature::Freshness;
use url::Url;

use super::route::{HttpServer, Route, Server, UpstreamConfig};
use super::{Config, Evidence, Intake, KeyFiles, LogTarget, Outbox, Requirement};
use crate::limits;

/// What a first try says.
#[derive(Clone, Debug)]
pub struct Dev {
    /// What is behind it.
    pub upstream: Server,
    /// The log.
    pub log: String,
    /// Where everything lies.
    pub folder: PathBuf,
    /// The port; 0 for any.
    pub listen: SocketAddr,
    /// Who it is: what the log's policy lists.
    pub issuer: String,
    /// The key that the log's policy lists for it.
    pub evidence_key: PathBuf,
    /// What becomes of callers without VAP.
    pub without_vap: Posture,
    /// What the server can neither read nor change, besides the gateway's own files.
    pub hide: Vec<PathBuf>,
}

impl Config {
    /// The configuration of a first try.
    ///
    /// # Errors
    /// If the log's URL is none.
    pub fn dev(dev: Dev) -> Result<Self, url::ParseError> {
        let log = Url::parse(&dev.log)?;
        let public_url = Url::parse(&format!("http://{}", dev.listen))?;
        Ok(Self {
            issuer: dev.issuer,
            listen: dev.listen,
            admin_listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            public_url,
            evidence: Evidence::Sqlite(dev.folder.join("evidence.db")),
            evidence_keep: None,
            state: dev.folder,
            hosts: ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec(),
            origins: Vec::new(),
            log: LogTarget {
                url: log.as_str().trim_end_matches('/').to_owned(),
                receipt_required: false,
                receipt_wait: limits::RECEIPT_WAIT,
                trust: None,
                token_file: None,
                ca_file: None,
            },
            outbox: Outbox::default(),
            intake: Intake::default(),
            session_idle: limits::VAP_SESSION_IDLE,
            otlp: None,
            judge: None,
            agents: Vec::new(),
            keyring: Default::default(),
            approvals: None,
            approvers: Vec::new(),
            keys: KeyFiles { evidence: Some(dev.evidence_key), ..KeyFiles::default() },
            routes: vec![Route {
                without_vap: dev.without_vap,
                ..Route::usual("/mcp", UpstreamConfig::One(dev.upstream))
            }],
            dev: true,
            file: None,
            sources: Vec::new(),
            hide: dev.hide,
            unsafe_shared_user: false,
        })
    }
}

impl Route {
    /// An endpoint with nothing said about it.
    pub fn usual(path: &str, upstream: UpstreamConfig) -> Self {
        Self {
            path: path.to_owned(),
            upstream,
            without_vap: Posture::Deny,
            restricted: Vec::new(),
            signed: Requirement::Optional,
            amendments_signed: true,
            confirmations: Default::default(),
            commitments_need_approval: false,
            amendments_need_approval: false,
            freshness: Freshness::Optional,
            ceiling: Default::default(),
            principal_ceiling: None,
            costs: Default::default(),
            sensitivities: Default::default(),
            risk: Default::default(),
            threshold: Degree::of(limits::JUDGE_THRESHOLD),
            gated: Vec::new(),
            rules: Vec::new(),
            judge: true,
            oauth: None,
            forward_invocation: true,
            filter_tools: false,
            tools: Default::default(),
            arguments_bytes: limits::ARGUMENT_BYTES,
            timeout: limits::UPSTREAM_TIMEOUT,
        }
    }
}

impl Server {
    /// A server at a URL.
    pub fn http(url: Url) -> Self {
        Self::Http(HttpServer { url, token_file: None, headers: Vec::new(), ca_file: None })
    }

    /// A server that we start, and that may change every file but ours.
    pub fn command(command: Vec<String>) -> Self {
        Self::Command(super::CommandServer {
            command,
            env: Default::default(),
            pass_env: limits::PASSED_ENV.map(str::to_owned).to_vec(),
            folder: None,
            children: limits::CHILDREN,
            user: None,
            writable: vec![PathBuf::from("/")],
            limits: Default::default(),
        })
    }
}
