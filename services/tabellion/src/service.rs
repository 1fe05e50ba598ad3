//! The connection of client commands to a service, and the conversion of its errors to [`Failure`]s.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use client::https::NoHttpClient;
use client::{Client, ClientError, EXCHANGE, Options};
use scitt::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::dev_files::DEV_URL;
use crate::exposed_settings::is_loopback;
use crate::runtime;
use crate::settings;
use crate::verification;

/// Which service, and how to reach it.
#[derive(Clone, Debug, Args)]
pub struct ServiceArgs {
    /// The service [default: setting log_url]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Additional trusted CA certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// A file with a bearer token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Maximum seconds, including retries
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

/// Problem code of a statement that is accepted and not in the log yet.
const ENTRY_PENDING: &str = "entry-pending";

/// Maximum number of pages of one list.
const MAX_PAGES: usize = 10_000;

/// A client with its runtime.
pub struct Service {
    /// The HTTP client of the service.
    pub client: Client,
    runtime: Runtime,
}

impl ServiceArgs {
    /// Creates the client for `--url` or the setting `log_url`, without sending a request.
    pub fn connect(&self, context: &Context) -> Result<Service, Failure> {
        self.connect_over(context, None)
    }

    /// Returns the flags with which another command of this program reaches the same service.
    pub fn to_flags(&self) -> Result<Vec<String>, Failure> {
        let Self { url, cacert, token_file, timeout } = self;
        let files = [("cacert", cacert), ("token-file", token_file)];
        let files =
            files.into_iter().filter_map(|(name, file)| Some(files::path_flag(name, file.as_deref()?)));
        let url = url.iter().map(|url| Ok(format!("--url={url}")));
        url.chain(files).chain([Ok(format!("--timeout={timeout}"))]).collect()
    }

    /// Creates the client, over a Unix socket if one is given.
    pub fn connect_over(&self, context: &Context, unix_socket: Option<PathBuf>) -> Result<Service, Failure> {
        let flags = self.url.iter().map(|url| ("log_url", url.clone())).collect();
        let settings = context.settings(flags)?;
        let started_here =
            settings.is_default("log_url").then(|| std::fs::read_to_string(DEV_URL).ok()).flatten();
        let url: Option<String> = match started_here {
            Some(url) => Some(url.trim().to_owned()),
            None => settings.get("log_url").map_err(|mistake| settings::refuse(vec![mistake]))?,
        };
        let options = Options {
            patience: Duration::from_secs(self.timeout),
            exchange: self.exchange(),
            extra_roots: self.cacert.as_deref().map(files::read).transpose()?.map(Into::into),
            token: self
                .token_file
                .as_deref()
                .map(files::read_text)
                .transpose()?
                .map(|token| token.trim().to_owned()),
            unix_socket,
        };
        let client = Client::new(&url.unwrap_or_default(), options).map_err(Failure::from)?;
        let runtime = runtime::single_threaded()?;
        Ok(Service { client, runtime })
    }

    /// Returns the maximum time of one exchange. Zero seconds allow no retries, and leave one exchange its usual time.
    fn exchange(&self) -> Duration {
        match self.timeout {
            0 => EXCHANGE,
            seconds => EXCHANGE.min(Duration::from_secs(seconds)),
        }
    }
}

impl Service {
    /// Runs a future to completion.
    pub fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Runs a request to completion, and converts its error to a [`Failure`].
    pub fn block_on<T>(&self, exchange: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        self.runtime.block_on(exchange).map_err(|error| self.failure(error))
    }

    /// Fetches the pages of a list, one at a time, at most [`MAX_PAGES`].
    pub fn pages<T: DeserializeOwned>(
        &self,
        first: String,
        mut take: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut next = Some(first);
        for _ in 0..MAX_PAGES {
            let Some(path) = next else { return Ok(()) };
            let (page, more) = self.block_on(self.client.page(&path))?;
            take(page)?;
            next = more;
        }
        Err(nonsense("its list does not end"))
    }

    /// Converts an error. A local service that is unreachable may not be running, so the hint is `tabellion serve --dev`,
    /// which serves plain HTTP.
    fn failure(&self, error: ClientError) -> Failure {
        let base = self.client.base();
        let is_unreachable = matches!(error, ClientError::Unreachable(_));
        let failure = Failure::from(error);
        match is_unreachable && base.scheme() == "http" && is_loopback(base) {
            true => failure.hint("tabellion serve --dev"),
            false => failure,
        }
    }
}

/// Returns the list `name` of an answer. An answer without it is no empty list, but something else than was requested.
pub fn served_list<'a>(answer: &'a Json, name: &str) -> Result<&'a [Json], Failure> {
    let list = answer.get(name).and_then(Json::as_array);
    list.map(Vec::as_slice).ok_or_else(|| nonsense(format!("it has no list {name:?}")))
}

/// The failure for an answer of the service that cannot be used (`nonsense`).
pub fn nonsense(why: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failure, "nonsense", format!("the service's answer cannot be used: {why}"))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::NotFound(problem) => from_problem(exit_of_absent(&problem), "not-found", &problem),
            ClientError::Refused { problem, .. } => from_problem(Exit::Refused, "refused", &problem),
            ClientError::TryAgain { problem, .. } => from_problem(Exit::TryAgain, "try-again", &problem),
            ClientError::Unreachable(why) => {
                Self::new(Exit::TryAgain, "unreachable", "cannot reach the service")
                    .fact("because", why)
                    .hint("tabellion help unreachable")
            }
            ClientError::StillRunning(location) => {
                Self::new(Exit::TryAgain, "still-running", "accepted, and still being registered")
                    .fact("receipt at", location.as_str())
            }
            ClientError::Unverified(verdict) => verification::failure(&verdict),
            ClientError::Setup(why) => Self::new(Exit::Usage, "usage", why),
            ClientError::NoHttpClient(why) => no_http_client(&why),
            other => Self::new(Exit::Failure, "nonsense", other.to_string()),
        }
    }
}

/// Converts the reason why there is no HTTP client.
pub fn no_http_client(why: &NoHttpClient) -> Failure {
    match why {
        NoHttpClient::NoAuthorities => Failure::new(Exit::Failure, "no-ca-certificates", why.to_string())
            .hint("tabellion help no-ca-certificates"),
        NoHttpClient::Settings(_) => Failure::new(Exit::Usage, "usage", why.to_string()),
    }
}

/// Returns the exit code of a 404: an accepted statement that is not in the log yet may be found later.
fn exit_of_absent(problem: &Problem) -> Exit {
    match problem.get_code() {
        Some(ENTRY_PENDING) => Exit::TryAgain,
        _ => Exit::NotFound,
    }
}

/// Converts the service's problem details (RFC 9457) to a [`Failure`].
fn from_problem(exit: Exit, fallback: &str, problem: &Problem) -> Failure {
    let mut failure = Failure::new(exit, problem.get_code().unwrap_or(fallback), problem.to_string());
    if let Some(rule) = problem.get_rule() {
        failure = failure.fact("rule", rule);
    }
    if let Some(offset) = problem.get_offset() {
        failure = failure.fact("at byte", offset.to_string());
    }
    failure
}

/// Percent-encodes all characters except unreserved ones (RFC 3986, section 2.3).
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_waits_for_its_place_is_asked_for_again_later() {
        for (code, exit) in [("entry-pending", Exit::TryAgain), ("entry-unknown", Exit::NotFound)] {
            let problem = Box::new(Problem::new("Not Found", "why").code(code));
            assert_eq!(Failure::from(ClientError::NotFound(problem)).exit, exit, "{code}");
        }
    }

    #[test]
    fn a_timeout_bounds_one_exchange_unless_it_only_forbids_retries() {
        let exchange =
            |timeout| ServiceArgs { url: None, cacert: None, token_file: None, timeout }.exchange().as_secs();
        assert_eq!([0, 1, 5, 300].map(exchange), [30, 1, 5, 30]);
    }

    #[test]
    fn an_answer_without_the_list_is_not_an_empty_list() {
        let page = serde_json::json!({ "entries": [] });
        assert_eq!(served_list(&page, "entries").unwrap(), &[] as &[Json]);
        for other in
            [serde_json::json!({ "title": "Not really" }), serde_json::json!({ "entries": 1 }), Json::Null]
        {
            assert_eq!(served_list(&other, "entries").unwrap_err().exit, Exit::Failure, "{other}");
        }
    }

    #[test]
    fn a_name_in_a_path_is_spelled_in_unreserved_characters() {
        assert_eq!(percent_encoded("https://a.example/é?"), "https%3A%2F%2Fa.example%2F%C3%A9%3F");
    }
}
