//! Reads a configuration: checks the values of a [`File`] and converts them.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admission::decimal::Decimal;
use admission::signature::{AgentKey, AgentSubject, Holder, Keyring};
use jiff::Timestamp;
use toml::Spanned;
use url::Url;

use super::file::{self, File, Text};
use super::{
    AgentKeys, Config, Evidence, Intake, Judge, KeyFiles, LogTarget, Mistake, Mistakes, Outbox, Route,
};
use super::{amounts, approvals, duration, routes};
use crate::judge::Meter;
use crate::limits;

/// Reads the text of a configuration file.
pub fn read(text: &str, folder: &Path) -> Result<Config, Mistakes> {
    let file: File = toml::from_str(text).map_err(|error| not_read(text, &error))?;
    let mut reader = Reader { text, folder, mistakes: Vec::new(), sources: Vec::new() };
    let config = reader.config(file);
    match (config, reader.mistakes.is_empty()) {
        (Some(config), true) => Ok(Config { sources: reader.sources, ..config }),
        _ => {
            reader.mistakes.sort_by_key(|mistake| mistake.line);
            Err(Mistakes(reader.mistakes))
        }
    }
}

/// A TOML syntax error, with its line only: the text around it may contain secrets.
fn not_read(text: &str, error: &toml::de::Error) -> Mistakes {
    let line = error.span().map(|span| line_of(text, span.start));
    Mistakes::one(line, "config", error.message().trim().to_owned())
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A reader that collects mistakes.
pub struct Reader<'a> {
    text: &'a str,
    folder: &'a Path,
    mistakes: Vec<Mistake>,
    sources: Vec<PathBuf>,
}

impl Reader<'_> {
    fn config(&mut self, file: File) -> Option<Config> {
        let issuer = self.issuer(&file.issuer);
        let listen = self.address("listen", &file.listen);
        let admin_listen = file.admin_listen.as_ref().and_then(|text| self.address("admin_listen", text));
        let public_url = self.public_url(file.public_url.as_ref(), &file.issuer, listen);
        let state = self.folder.join(&file.state);
        let evidence = self.evidence(file.evidence.as_ref(), &state);
        let evidence_keep = self.time("evidence_keep", file.evidence_keep.as_ref());
        let origins = file.origins.iter().filter_map(|text| self.origin(text)).collect();
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
        let otlp = file.otlp.as_ref().and_then(|text| self.collector(text));
        let hosts = self.hosts(file.hosts, public_url.as_ref(), listen);
        let routes = routes::read(self, file.routes, public_url.as_ref());
        approvals::check(self, approvals.as_ref(), &approvers, &routes, judge.is_some());
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
            log: log?,
            outbox,
            intake,
            session_idle,
            otlp,
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
            routes,
            dev: false,
            file: None,
            sources: Vec::new(),
            hide: file.hide.iter().map(|path| self.folder.join(path)).collect(),
            unsafe_shared_user: false,
        })
    }

    fn issuer(&mut self, text: &Text) -> Option<String> {
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

    fn public_url(&mut self, given: Option<&Text>, issuer: &Text, listen: Option<SocketAddr>) -> Option<Url> {
        let url = match given {
            Some(text) => self.http("public_url", text)?,
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

    fn evidence(&mut self, given: Option<&Text>, state: &Path) -> Option<Evidence> {
        let Some(text) = given else { return Some(Evidence::Sqlite(state.join("evidence.db"))) };
        let url = text.get_ref();
        match url.split_once(':') {
            Some(("sqlite", path)) => Some(Evidence::Sqlite(self.folder.join(path))),
            Some(("postgres" | "postgresql", _)) => Some(Evidence::Postgres(url.clone())),
            _ => self.wrong(text, "evidence", "sqlite:PATH or postgres://USER@HOST/NAME"),
        }
    }

    fn collector(&mut self, text: &Text) -> Option<Url> {
        match self.http("otlp", text)? {
            url if url.query().is_none() => Some(url),
            _ => self.wrong(
                text,
                "otlp",
                "the collector's address, like http://127.0.0.1:4318, without a query",
            ),
        }
    }

    fn origin(&mut self, text: &Text) -> Option<String> {
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

    fn log(&mut self, log: file::Log) -> Option<LogTarget> {
        let url = self.http("log.url", &log.url);
        let receipt_wait = self.time("log.receipt_wait", log.receipt_wait.as_ref());
        if let (true, None) = (log.receipt_required.get_ref(), &log.trust) {
            let why = "a receipt is worth what it is verified with: give log.trust";
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

    fn judge(&mut self, judge: file::Judge) -> Option<Judge> {
        let url = self.http("judge.url", &judge.url);
        // V-28: wherever there is a judge, some calls are examined at random.
        let sample_rate =
            self.share("judge.sample_rate", judge.sample_rate.as_ref(), limits::JUDGE_SAMPLE_RATE);
        let confidence = self.share("judge.confidence", judge.confidence.as_ref(), limits::JUDGE_CONFIDENCE);
        let mut amount = |key: &str, written: Option<file::Amount>, usual: &str| match written {
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

    /// A number above 0 and at most 1.
    fn share(&mut self, key: &str, given: Option<&Spanned<f64>>, usual: f64) -> f64 {
        match given {
            Some(share) if *share.get_ref() > 0.0 && *share.get_ref() <= 1.0 => *share.get_ref(),
            Some(share) => {
                self.mistake(Some(share.span()), key, "a number above 0, and 1 at most (V-28)");
                usual
            }
            None => usual,
        }
    }

    fn agents(&mut self, agents: &[file::Agent]) -> Vec<(Range<usize>, AgentKeys)> {
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
    fn subjects(&mut self, agents: &[file::Agent], routes: &[Route]) -> Vec<AgentSubject> {
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
                let why = "no route takes tokens of this issuer, so nobody could be this agent";
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

    /// The keys in a file, which their holder may sign with in this period.
    pub fn keys(
        &mut self,
        what: &str,
        holder: Holder,
        jwk: &Spanned<PathBuf>,
        validity: [&Option<Text>; 2],
    ) -> Option<(Range<usize>, AgentKeys)> {
        let file = self.folder.join(jwk.get_ref());
        let read = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()));
        let keys = read.and_then(|bytes| crate::keys::parse_set(&bytes));
        let [not_before, not_after] = validity.map(|text| self.timestamp(what, text.as_ref()));
        self.sources.push(file.clone());
        match keys {
            Ok(keys) => Some((jwk.span(), AgentKeys { holder, keys, file, not_before, not_after })),
            Err(why) => {
                self.mistake(Some(jwk.span()), &format!("{what}.jwk"), why);
                None
            }
        }
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

    /// An RFC 3339 timestamp.
    pub fn timestamp(&mut self, what: &str, text: Option<&Text>) -> Option<Timestamp> {
        let text = text?;
        match text.get_ref().parse() {
            Ok(time) => Some(time),
            Err(_) => self.wrong(text, what, "a time is written like 2026-12-01T00:00:00Z"),
        }
    }

    fn outbox(&mut self, outbox: file::Outbox) -> Outbox {
        let usual = Outbox::default();
        Outbox {
            records: outbox.records.map_or(usual.records, Spanned::into_inner),
            bytes: self.size("outbox.bytes", outbox.bytes.as_ref()).unwrap_or(usual.bytes),
            age: self.time("outbox.age", outbox.age.as_ref()).unwrap_or(usual.age),
        }
    }

    fn intake(&mut self, given: file::Limits) -> Intake {
        let usual = Intake::default();
        let body = self.size("limits.body_bytes", given.body_bytes.as_ref());
        let body = body.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usual.body_bytes);
        if !(1..=limits::MAX_BODY_BYTES).contains(&body) {
            let span = given.body_bytes.as_ref().map(Spanned::span);
            self.mistake(span, "limits.body_bytes", format!("1 to {} bytes", limits::MAX_BODY_BYTES));
        }
        Intake {
            body_bytes: body,
            requests_per_second: self.positive(
                "limits.requests_per_second",
                given.requests_per_second,
                usual.requests_per_second,
            ),
            burst: self.positive("limits.burst", given.burst, usual.burst),
            connections: self.positive("limits.connections", given.connections, usual.connections),
        }
    }

    /// A number of at least 1.
    pub fn positive<T: Default + PartialEq>(&mut self, key: &str, given: Option<Spanned<T>>, usual: T) -> T {
        match given {
            None => usual,
            Some(number) if *number.get_ref() == T::default() => {
                self.mistake(Some(number.span()), key, "0 would let nothing through");
                usual
            }
            Some(number) => number.into_inner(),
        }
    }

    /// A socket address.
    pub fn address(&mut self, key: &str, text: &Text) -> Option<SocketAddr> {
        match text.get_ref().parse() {
            Ok(address) => Some(address),
            Err(_) => self.wrong(text, key, "an address is written like 127.0.0.1:7400"),
        }
    }

    /// An http or https URL without credentials and fragment.
    pub fn http(&mut self, key: &str, text: &Text) -> Option<Url> {
        match Url::parse(text.get_ref()) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                self.wrong(text, key, "an http or https URL is needed here")
            }
            Ok(url) if url.fragment().is_some() || url.password().is_some() || !url.username().is_empty() => {
                self.wrong(text, key, "no credentials and no fragment belong in this URL")
            }
            Ok(url) => Some(url),
            Err(error) => self.wrong(text, key, error.to_string()),
        }
    }

    /// A duration above zero.
    pub fn time(&mut self, key: &str, text: Option<&Text>) -> Option<Duration> {
        let text = text?;
        match duration::time(text.get_ref()).filter(|length| !length.is_zero()) {
            Some(length) => Some(length),
            None => self.wrong(text, key, "a length of time is written like 250ms, 90s, 15m, 2h or 1d"),
        }
    }

    /// A size in bytes.
    pub fn size(&mut self, key: &str, written: Option<&file::Amount>) -> Option<u64> {
        let written = written?;
        let bytes = match written.get_ref() {
            toml::Value::Integer(number) => u64::try_from(*number).ok(),
            toml::Value::String(text) => duration::bytes(text),
            _ => None,
        };
        if bytes.is_none() {
            self.mistake(Some(written.span()), key, "a size is written like 1048576, \"4MiB\" or \"1GiB\"");
        }
        bytes
    }

    /// A path, resolved against the file's folder.
    pub fn relative(&self, path: Option<PathBuf>) -> Option<PathBuf> {
        path.map(|path| self.folder.join(path))
    }

    /// As [`Reader::relative`], for a file that is watched for changes.
    pub fn source_file(&mut self, path: Option<PathBuf>) -> Option<PathBuf> {
        let path = self.relative(path)?;
        self.sources.push(path.clone());
        Some(path)
    }

    /// The source text at this range of the file.
    pub fn source(&self, span: &Range<usize>) -> String {
        self.text.get(span.clone()).unwrap_or_default().trim().to_owned()
    }

    /// Reports a mistake, and returns `None` for the value.
    pub fn wrong<T>(&mut self, at: &Text, key: &str, why: impl Into<String>) -> Option<T> {
        self.mistake(Some(at.span()), key, why);
        None
    }

    /// Reports a mistake.
    pub fn mistake(&mut self, span: Option<Range<usize>>, key: &str, why: impl Into<String>) {
        let line = span.map(|span| line_of(self.text, span.start));
        self.mistakes.push(Mistake { line, key: key.to_owned(), why: why.into() });
    }
}
