//! Reads the upstream of a route: one server, or several with prefixes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use serving::config_file::{Amount, SpannedText};
use toml::Spanned;

use super::file;
use super::reader::GatewayReader;
use super::route::{CommandServer, HttpServer, Server, UpstreamConfig};
use crate::isolation::{ChildLimits, User};
use crate::limits::{CHILDREN, MAX_PREFIX_BYTES, MAX_SEPARATOR_BYTES, MAX_SERVERS, PASSED_ENV};

/// The default text between a prefix and a name.
const SEPARATOR: &str = "__";

/// The settings of one server, from a `[[route]]` or a `[[route.server]]` section.
struct ServerSettings {
    span: Range<usize>,
    upstream: Option<SpannedText>,
    token_file: Option<PathBuf>,
    headers: Option<BTreeMap<String, SpannedText>>,
    ca_file: Option<PathBuf>,
    command: Option<Spanned<Vec<String>>>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    folder: Option<PathBuf>,
    children: Option<Spanned<usize>>,
    user: Option<SpannedText>,
    writable: Option<Vec<PathBuf>>,
    memory: Option<Amount>,
    processes: Option<Spanned<u64>>,
    open_files: Option<Spanned<u64>>,
}

impl ServerSettings {
    /// Returns whether a setting is present that only applies to a `command`.
    fn has_settings_of_a_command(&self) -> bool {
        self.env.is_some()
            || self.pass_env.is_some()
            || self.folder.is_some()
            || self.children.is_some()
            || self.user.is_some()
            || self.writable.is_some()
            || self.memory.is_some()
            || self.processes.is_some()
            || self.open_files.is_some()
    }
}

/// Reads the upstream of a route.
pub fn upstream(
    reader: &mut GatewayReader<'_>,
    span: Range<usize>,
    route: &mut file::RouteSection,
) -> Option<UpstreamConfig> {
    let named = ServerSettings {
        span: span.clone(),
        upstream: route.upstream.take(),
        token_file: route.upstream_token_file.take(),
        headers: route.upstream_headers.take(),
        ca_file: route.upstream_ca_file.take(),
        command: route.command.take(),
        env: route.env.take(),
        pass_env: route.pass_env.take(),
        folder: route.folder.take(),
        children: route.children.take(),
        user: route.user.take(),
        writable: route.writable.take(),
        memory: route.memory.take(),
        processes: route.processes.take(),
        open_files: route.open_files.take(),
    };
    let servers = std::mem::take(&mut route.servers);
    if servers.is_empty() {
        return server(reader, named).map(UpstreamConfig::One);
    }
    if named.upstream.is_some() || named.command.is_some() {
        reader.mistake(Some(span), "route", "either one upstream or command, or a list of [[route.server]]");
        return None;
    }
    let separator = separator(reader, route.separator.as_ref());
    let servers = many(reader, servers);
    Some(UpstreamConfig::Many { servers: servers?, separator: separator? })
}

/// The separator; its characters cannot occur in a prefix.
fn separator(reader: &mut GatewayReader<'_>, text: Option<&SpannedText>) -> Option<String> {
    let Some(text) = text else { return Some(SEPARATOR.to_owned()) };
    let sound = |byte: u8| b"._/".contains(&byte);
    match (1..=MAX_SEPARATOR_BYTES).contains(&text.get_ref().len()) && text.get_ref().bytes().all(sound) {
        true => Some(text.get_ref().clone()),
        false => reader.wrong(text, "route.separator", "one to four of . _ and /"),
    }
}

fn many(
    reader: &mut GatewayReader<'_>,
    servers: Vec<Spanned<file::ServerSection>>,
) -> Option<Vec<(String, Server)>> {
    if servers.len() > MAX_SERVERS {
        reader.mistake(
            Some(servers[MAX_SERVERS].span()),
            "route.server",
            format!("no more than {MAX_SERVERS}"),
        );
        return None;
    }
    let mut prefixes = BTreeSet::new();
    let mut read = Vec::new();
    for given in servers {
        let span = given.span();
        let given = given.into_inner();
        let prefix = prefix(reader, &given.prefix);
        // Many clients ignore the case of names.
        if !prefixes.insert(given.prefix.get_ref().to_ascii_lowercase()) {
            reader.mistake(
                Some(given.prefix.span()),
                "route.server.prefix",
                "a second server of this prefix: upper and lower case are the same",
            );
        }
        let named = ServerSettings {
            span,
            upstream: given.upstream,
            token_file: given.upstream_token_file,
            headers: given.upstream_headers,
            ca_file: given.upstream_ca_file,
            command: given.command,
            env: given.env,
            pass_env: given.pass_env,
            folder: given.folder,
            children: given.children,
            user: given.user,
            writable: given.writable,
            memory: given.memory,
            processes: given.processes,
            open_files: given.open_files,
        };
        if let (Some(prefix), Some(server)) = (prefix, server(reader, named)) {
            read.push((prefix, server));
        }
    }
    Some(read)
}

/// A prefix: letters, digits and hyphens, a letter first, so that it cannot contain the separator (V-8).
fn prefix(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<String> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let prefix = text.get_ref();
    let starts = prefix.starts_with(|first: char| first.is_ascii_alphabetic());
    match starts && prefix.len() <= MAX_PREFIX_BYTES && prefix.bytes().all(sound) {
        true => Some(prefix.clone()),
        false => {
            let why = format!("1 to {MAX_PREFIX_BYTES} letters, digits and hyphens, a letter first");
            reader.wrong(text, "route.server.prefix", why)
        }
    }
}

fn server(reader: &mut GatewayReader<'_>, named: ServerSettings) -> Option<Server> {
    match (named.upstream.is_some(), named.command.is_some()) {
        (true, false) => http(reader, named).map(Server::Http),
        (false, true) => command(reader, named).map(Server::Command),
        _ => {
            reader.mistake(Some(named.span), "route", "either an upstream (a URL) or a command is needed");
            None
        }
    }
}

fn http(reader: &mut GatewayReader<'_>, named: ServerSettings) -> Option<HttpServer> {
    if named.has_settings_of_a_command() {
        let why = "env, pass_env, folder, children, user, writable, memory, processes and open_files go with a command";
        reader.mistake(Some(named.span), "route", why);
    }
    let text = named.upstream?;
    let headers = named.headers.unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| header(reader, name, &value)).collect();
    Some(HttpServer {
        url: reader.plain_url("upstream", &text)?,
        token_file: reader.relative(named.token_file),
        headers,
        ca_file: reader.relative(named.ca_file),
    })
}

/// A header that the operator configures. Headers that the protocol or the connection needs are refused.
fn header(reader: &mut GatewayReader<'_>, name: String, value: &SpannedText) -> Option<(String, String)> {
    const OURS: [&str; 9] = [
        "authorization",
        "content-length",
        "content-type",
        "host",
        "connection",
        "transfer-encoding",
        "mcp-session-id",
        "accept",
        "origin",
    ];
    let lower = name.to_ascii_lowercase();
    if OURS.contains(&lower.as_str()) {
        return reader.wrong(value, "upstream_headers", format!("{name} is not the operator's to set"));
    }
    let sound =
        http::HeaderName::try_from(&lower).is_ok() && http::HeaderValue::try_from(value.get_ref()).is_ok();
    match sound {
        true => Some((lower, value.get_ref().clone())),
        false => reader.wrong(value, "upstream_headers", format!("{name} is not a header")),
    }
}

fn command(reader: &mut GatewayReader<'_>, named: ServerSettings) -> Option<CommandServer> {
    let command = named.command?;
    if named.token_file.is_some() || named.headers.is_some() || named.ca_file.is_some() {
        reader.mistake(
            Some(named.span),
            "route",
            "a token, headers and certificates go with an upstream URL",
        );
    }
    let span = command.span();
    let command = command.into_inner();
    if command.first().is_none_or(String::is_empty) {
        reader.mistake(Some(span), "command", "a program is needed, and then its arguments");
        return None;
    }
    let usual = ChildLimits::default();
    let limits = ChildLimits {
        memory: reader.size("memory", named.memory.as_ref(), ..).unwrap_or(usual.memory),
        processes: reader.number("processes", named.processes.as_ref(), 1..).unwrap_or(usual.processes),
        open_files: reader.number("open_files", named.open_files.as_ref(), 1..).unwrap_or(usual.open_files),
    };
    let user = named.user.as_ref().and_then(|text| user(reader, text));
    let folder = reader.relative(named.folder);
    let writable =
        named.writable.unwrap_or_default().into_iter().filter_map(|path| reader.relative(Some(path)));
    Some(CommandServer {
        command,
        user,
        writable: writable.chain(folder.clone()).collect(),
        limits,
        env: named.env.unwrap_or_default(),
        pass_env: named.pass_env.unwrap_or_else(|| PASSED_ENV.map(str::to_owned).to_vec()),
        folder,
        children: reader.number("children", named.children.as_ref(), 1..).unwrap_or(CHILDREN),
    })
}

fn user(reader: &mut GatewayReader<'_>, text: &SpannedText) -> Option<User> {
    match User::read(text.get_ref()) {
        Ok(user) => Some(user),
        Err(why) => reader.wrong(text, "user", why),
    }
}
