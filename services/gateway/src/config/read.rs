//! Reads a configuration: checks the values of a [`ConfigFile`] and converts them.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Bound, Range};
use std::path::Path;

use admission::signature::{AgentKey, AgentSubject, Holder, Keyring};
use decimal::Decimal;
use serving::config_file::{self, Amount, SpannedText};
use toml::Spanned;
use url::Url;

use super::file::{self, ConfigFile};
use super::reader::GatewayReader;
use super::{AgentKeys, Config, Evidence, Intake, Judge, KeyFiles, LogTarget, Mistakes, Outbox, Route};
use super::{a2a, agentroa, amounts, approvals, routes};
use crate::judge::Meter;
use crate::limits;

/// Reads the text of a configuration file.
pub fn read(text: &str, folder: &Path) -> Result<Config, Mistakes> {
    let file: ConfigFile = config_file::parse(text)?;
    let mut reader = GatewayReader::new(text, folder);
    let config = reader.config(file);
    reader.into_config(config)
}

impl GatewayReader<'_> {
    fn config(&mut self, file: ConfigFile) -> Option<Config> {
        let issuer = self.issuer(&file.issuer);
        let listen = self.address("listen", &file.listen);
        let admin_listen = file.admin_listen.as_ref().and_then(|text| self.address("admin_listen", text));
        let public_url = self.public_url(file.public_url.as_ref(), &file.issuer, listen);
        let state = self.path(&file.state);
        let evidence = self.evidence(file.evidence.as_ref(), &state);
        let evidence_keep = self.time("evidence_keep", file.evidence_keep.as_ref());
        let origins = file.origins.iter().filter_map(|text| self.origin(text)).collect();
        let certificate_proxies =
            file.certificate_proxies.iter().filter_map(|text| self.proxy(text)).collect();
        let log = self.log(file.log);
        let judge = file.judge.and_then(|judge| self.judge(judge.into_inner()));
        let mut agents = self.agents(&file.agents);
        let (approvers, signers) = approvals::approvers(self, &file.approvers);
        agents.extend(signers);
        let approvals = approvals::listener(self, file.approvals);
        let keyring = self.keyring(&agents);
        let outbox = self.outbox(file.outbox);
        let intake = self.intake(file.limits);
        let session_idle =
            self.time("session_idle", file.session_idle.as_ref()).unwrap_or(limits::VAP_SESSION_IDLE);
        let otlp = self.collector(file.otlp.as_ref());
        let error_documentation = self.error_documentation(file.error_documentation.as_ref());
        let hosts = self.hosts(file.hosts, public_url.as_ref(), listen);
        let routes = routes::read(self, file.routes, public_url.as_ref());
        approvals::check(self, approvals.as_ref(), &approvers, &routes, judge.is_some());
        let agentroa = agentroa::read(self, file.agentroa);
        agentroa::check(self, agentroa.as_ref(), &routes);
        a2a::check(self, &routes);
        let keyring = keyring.with_subjects(self.subjects(&file.agents, &routes));
        Some(Config {
            issuer: issuer?,
            listen: listen?,
            admin_listen,
            public_url: public_url?,
            state,
            evidence: evidence?,
            evidence_keep,
            hosts,
            origins,
            certificate_proxies,
            log: log?,
            outbox,
            intake,
            session_idle,
            otlp,
            error_documentation,
            judge,
            agents: agents.into_iter().map(|(_, keys)| keys).collect(),
            keyring,
            approvals,
            approvers,
            keys: KeyFiles {
                evidence: self.relative(file.keys.evidence),
                verdict: self.relative(file.keys.verdict),
                state: self.relative(file.keys.state),
            },
            agentroa,
            routes,
            dev: false,
            file: None,
            sources: Vec::new(),
            hide: file.hide.iter().map(|path| self.path(path)).collect(),
            unsafe_shared_user: false,
        })
    }

    fn issuer(&mut self, text: &SpannedText) -> Option<String> {
        let issuer = text.get_ref();
        let usable = !issuer.is_empty()
            && issuer.len() <= limits::MAX_ISSUER_BYTES
            && issuer.bytes().all(|byte| byte.is_ascii_graphic())
            && (issuer.starts_with("did:") || Url::parse(issuer).is_ok());
        match usable {
            true => Some(issuer.clone()),
            false => self.wrong(text, "issuer", "the gateway's name is a URL or a DID"),
        }
    }

    /// Reads the address of a proxy that hands over client certificates.
    fn proxy(&mut self, text: &SpannedText) -> Option<IpAddr> {
        match text.get_ref().parse::<IpAddr>() {
            Ok(address) => Some(address.to_canonical()),
            Err(_) => self.wrong(text, "certificate_proxies", "the IP address of a proxy"),
        }
    }

    fn public_url(
        &mut self,
        given: Option<&SpannedText>,
        issuer: &SpannedText,
        listen: Option<SocketAddr>,
    ) -> Option<Url> {
        let url = match given {
            Some(text) => self.plain_url("public_url", text)?,
            None => match Url::parse(issuer.get_ref()) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => url,
                _ => Url::parse(&format!("http://{}", listen?)).ok()?,
            },
        };
        if url.path() == "/" && url.query().is_none() && url.fragment().is_none() {
            return Some(url);
        }
        match given {
            Some(text) => self.wrong(text, "public_url", "scheme, host and port alone; routes have paths"),
            None => {
                let why = "an issuer with a path says not where clients come: give public_url";
                self.wrong(issuer, "public_url", why)
            }
        }
    }

    /// The accepted host names: those of the file, or by default the public host name and, on a loopback listener, the
    /// loopback names.
    fn hosts(
        &mut self,
        given: Option<Vec<String>>,
        public_url: Option<&Url>,
        listen: Option<SocketAddr>,
    ) -> Vec<String> {
        let own = || {
            let public = public_url.and_then(Url::host_str);
            let mut own: Vec<String> = public.map(str::to_owned).into_iter().collect();
            if listen.is_some_and(|address| address.ip().is_loopback()) {
                own.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
            }
            own
        };
        let mut hosts = given.unwrap_or_else(own);
        hosts.iter_mut().for_each(|host| host.make_ascii_lowercase());
        hosts.dedup();
        hosts
    }

    fn evidence(&mut self, given: Option<&SpannedText>, state: &Path) -> Option<Evidence> {
        let Some(text) = given else { return Some(Evidence::Sqlite(state.join("evidence.db"))) };
        let url = text.get_ref();
        match url.split_once(':') {
            Some(("sqlite", path)) => Some(Evidence::Sqlite(self.path(path))),
            Some(("postgres" | "postgresql", _)) => Some(Evidence::Postgres(url.clone())),
            _ => self.wrong(text, "evidence", "sqlite:PATH or postgres://USER@HOST/NAME"),
        }
    }

    fn origin(&mut self, text: &SpannedText) -> Option<String> {
        match Url::parse(text.get_ref()) {
            Ok(url) if url.origin().is_tuple() && url.origin().ascii_serialization() == *text.get_ref() => {
                Some(text.get_ref().clone())
            }
            _ => self.wrong(
                text,
                "origins",
                "an origin is a scheme, a host and perhaps a port: https://app.example",
            ),
        }
    }

    fn log(&mut self, log: file::LogSection) -> Option<LogTarget> {
        let url = self.plain_url("log.url", &log.url);
        let receipt_wait = self.time("log.receipt_wait", log.receipt_wait.as_ref());
        if let (true, None) = (log.receipt_required.get_ref(), &log.trust) {
            let why = "receipts are verified with the keys in log.trust: set it";
            self.mistake(Some(log.receipt_required.span()), "log.receipt_required", why);
        }
        Some(LogTarget {
            url: url?.as_str().trim_end_matches('/').to_owned(),
            receipt_required: *log.receipt_required.get_ref(),
            receipt_wait: receipt_wait.unwrap_or(limits::RECEIPT_WAIT),
            trust: self.source_file(log.trust),
            token_file: self.relative(log.token_file),
            ca_file: self.relative(log.ca_file),
        })
    }

    fn judge(&mut self, judge: file::JudgeSection) -> Option<Judge> {
        let url = self.plain_url("judge.url", &judge.url);
        // V-28: wherever there is a judge, some calls are examined at random.
        let sample_rate =
            self.share("judge.sample_rate", judge.sample_rate.as_ref(), limits::JUDGE_SAMPLE_RATE);
        let confidence = self.share("judge.confidence", judge.confidence.as_ref(), limits::JUDGE_CONFIDENCE);
        let mut amount = |key: &str, written: Option<Amount>, usual: &str| match written {
            Some(written) => amounts::amount(self, key, &written),
            None => Decimal::read(usual).ok(),
        };
        let (cost, cap) = match judge.meter {
            Meter::Answers => (limits::JUDGE_COST, limits::JUDGE_CAP),
            Meter::Tokens => (limits::JUDGE_TOKENS, limits::JUDGE_TOKENS_CAP),
        };
        let cost = amount("judge.cost", judge.cost, cost);
        let cap = amount("judge.cap", judge.cap, cap);
        Some(Judge {
            url: url?,
            model: judge.model,
            key_file: self.relative(judge.key_file),
            timeout: self.time("judge.timeout", judge.timeout.as_ref()).unwrap_or(limits::JUDGE_TIMEOUT),
            sample_rate,
            confidence,
            commitments: judge.commitments,
            cache: self.time("judge.cache", judge.cache.as_ref()).unwrap_or(limits::JUDGE_CACHE),
            meter: judge.meter,
            cost: cost?,
            cap: cap?,
        })
    }

    /// A share of calls or of certainty: above 0, at most 1.
    fn share(&mut self, key: &str, given: Option<&Spanned<f64>>, usual: f64) -> f64 {
        self.number(key, given, (Bound::Excluded(0.0), Bound::Included(1.0))).unwrap_or(usual)
    }

    fn agents(&mut self, agents: &[file::AgentSection]) -> Vec<(Range<usize>, AgentKeys)> {
        let mut read = Vec::new();
        for agent in agents {
            let holder = Holder::Agent(agent.id.get_ref().clone());
            let validity = [&agent.not_before, &agent.not_after];
            match (&agent.jwk, &agent.oauth) {
                (Some(jwk), _) => read.extend(self.keys("agent", holder, jwk, validity)),
                (None, Some(_)) => {}
                (None, None) => {
                    let why = "an agent is known by a key (jwk), by an access token (oauth), or by both";
                    self.mistake(Some(agent.id.span()), "agent", why);
                }
            }
        }
        read
    }

    /// The token subjects by which agents are identified. Each belongs to one agent, and its issuer must be accepted on
    /// some route.
    fn subjects(&mut self, agents: &[file::AgentSection], routes: &[Route]) -> Vec<AgentSubject> {
        let mut read: Vec<AgentSubject> = Vec::new();
        for agent in agents {
            let Some(oauth) = &agent.oauth else { continue };
            let known = AgentSubject {
                agent_id: agent.id.get_ref().clone(),
                issuer: oauth.issuer.get_ref().clone(),
                subject: oauth.subject.get_ref().clone(),
            };
            let is_taken = |route: &Route| route.oauth.as_ref().is_some_and(|set| set.issuer == known.issuer);
            if !routes.iter().any(is_taken) {
                let why = "no route accepts tokens of this issuer, so no caller could be this agent";
                self.mistake(Some(oauth.issuer.span()), "agent.oauth.issuer", why);
            }
            let same = |other: &AgentSubject| other.issuer == known.issuer && other.subject == known.subject;
            if read.iter().any(same) {
                self.mistake(
                    Some(oauth.subject.span()),
                    "agent.oauth.subject",
                    "a token belongs to one agent",
                );
            }
            read.push(known);
        }
        read
    }

    /// A keyring of all keys. An unusable key is reported at the line that names its file.
    fn keyring(&mut self, agents: &[(Range<usize>, AgentKeys)]) -> Keyring {
        let mut keys = Vec::new();
        for (span, agent) in agents {
            for jwk in &agent.keys {
                let made = AgentKey::new(agent.holder.clone(), jwk, agent.not_before, agent.not_after);
                match made {
                    Ok(key) => keys.push(key),
                    Err(why) => self.mistake(Some(span.clone()), "jwk", why.to_string()),
                }
            }
        }
        let last = agents.last().map(|(span, _)| span.clone());
        Keyring::new(keys).unwrap_or_else(|why| {
            self.mistake(last, "jwk", why.to_string());
            Keyring::default()
        })
    }

    fn outbox(&mut self, outbox: file::OutboxSection) -> Outbox {
        let usual = Outbox::default();
        Outbox {
            records: outbox.records.map_or(usual.records, Spanned::into_inner),
            bytes: self.size("outbox.bytes", outbox.bytes.as_ref(), ..).unwrap_or(usual.bytes),
            age: self.time("outbox.age", outbox.age.as_ref()).unwrap_or(usual.age),
        }
    }

    fn intake(&mut self, given: file::LimitsSection) -> Intake {
        let usual = Intake::default();
        let body =
            self.size("limits.body_bytes", given.body_bytes.as_ref(), 1..=limits::MAX_BODY_BYTES as u64);
        let rate = given.requests_per_second.as_ref();
        Intake {
            body_bytes: body.map_or(usual.body_bytes, |bytes| bytes as usize),
            requests_per_second: self
                .number("limits.requests_per_second", rate, 1..)
                .unwrap_or(usual.requests_per_second),
            burst: self.number("limits.burst", given.burst.as_ref(), 1..).unwrap_or(usual.burst),
            connections: self
                .number("limits.connections", given.connections.as_ref(), 1..)
                .unwrap_or(usual.connections),
        }
    }
}
