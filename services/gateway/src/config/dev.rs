//! The configuration of `gateway run --dev`: no file, loopback only, one endpoint, and an issuer that `serve --dev`
//! trusts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use admission::risk::Degree;
use admission::rules::Posture;
use admission::signature::Freshness;
use url::Url;

use super::commitment;
use super::route::{HttpServer, Route, RouteProtocol, Server, UpstreamConfig};
use super::{Config, Evidence, Intake, KeyFiles, LogTarget, Outbox, Requirement};
use crate::limits;

/// The settings of a first trial (`--dev`).
#[derive(Clone, Debug)]
pub struct Dev {
    /// The MCP server behind the endpoint.
    pub upstream: Server,
    /// The URL of the log.
    pub log: String,
    /// The folder for keys, state and evidence.
    pub folder: PathBuf,
    /// The address of the clients' listener; port 0 chooses any free port.
    pub listen: SocketAddr,
    /// The gateway's issuer name, as the log's policy lists it.
    pub issuer: String,
    /// The evidence key that the log's policy lists for this issuer.
    pub evidence_key: PathBuf,
    /// The treatment of callers without VAP.
    pub without_vap: Posture,
    /// Further paths that the server can neither read nor change, in addition to the gateway's own files.
    pub hide: Vec<PathBuf>,
}

impl Config {
    /// Makes the configuration of a first trial.
    ///
    /// # Errors
    /// If the log's URL cannot be parsed.
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
            certificate_proxies: Vec::new(),
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
            error_documentation: Default::default(),
            judge: None,
            agents: Vec::new(),
            keyring: Default::default(),
            approvals: None,
            approvers: Vec::new(),
            agentroa: None,
            keys: KeyFiles { evidence: Some(dev.evidence_key), ..KeyFiles::default() },
            routes: vec![Route {
                without_vap: dev.without_vap,
                commitment: (dev.without_vap == Posture::Commitment).then(commitment::usual),
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
    /// An endpoint with default settings.
    pub fn usual(path: &str, upstream: UpstreamConfig) -> Self {
        Self {
            path: path.to_owned(),
            protocol: RouteProtocol::Mcp,
            upstream,
            without_vap: Posture::Deny,
            commitment: None,
            restricted: Vec::new(),
            signed: Requirement::Optional,
            amendments_signed: true,
            confirmations: Default::default(),
            commitments_need_approval: false,
            amendments_need_approval: false,
            freshness: Freshness::Optional,
            ceiling: Default::default(),
            principal_ceiling: None,
            authority: Default::default(),
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
            call_timeout: limits::CALL_TIME,
            request_timeout: limits::REQUEST_TIME,
        }
    }
}

impl Server {
    /// A server at a URL, with default settings.
    pub fn http(url: Url) -> Self {
        Self::Http(HttpServer { url, token_file: None, headers: Vec::new(), ca_file: None })
    }

    /// A server that the gateway starts as a child, with `/` as its writable folder (the gateway's own files excepted).
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
