//! The gateway's configuration for the servers of a client: one route for each.

use std::fmt::Write as _;
use std::path::Path;

use super::client_file::StdioServer;
use crate::commands::gateway::toml_text::quoted;

/// Calls in a day that a new route allows.
const CALLS: u64 = 1_000;
/// Longest path of a route.
const MAX_PATH: usize = 64;

/// Where the gateway keeps its state, and the log that its records go to.
pub struct Target<'a> {
    /// The gateway's name in the log's policy.
    pub issuer: &'a str,
    /// The URL of the log.
    pub log: &'a str,
    /// What receipts are verified with.
    pub trust: Option<&'a Path>,
    /// The state folder.
    pub state: &'a Path,
    /// The evidence key; in the state folder if `None`.
    pub key: Option<&'a Path>,
}

/// Returns the part of the file before its routes.
pub fn head(target: &Target<'_>, client: &Path) -> String {
    let mut text = format!(
        "# Written by `tabellion gateway wrap` for the MCP servers of {}.\n\
         # Each route may be changed: `tabellion help gateway` and deploy/gateway.toml show every setting.\n\n\
         issuer = {}\n\
         listen = \"127.0.0.1:7400\"               # for `tabellion gateway run`; `gateway stdio` has no listener\n\
         state = {}\n\n\
         [log]\n\
         url = {}\n",
        client.display().to_string().replace(char::is_control, "?"),
        quoted(target.issuer),
        quoted_path(target.state),
        quoted(target.log)
    );
    if let Some(trust) = target.trust {
        let _ = writeln!(text, "trust = {}", quoted_path(trust));
    }
    if let Some(key) = target.key {
        let _ = write!(text, "\n[keys]\nevidence = {}\n", quoted_path(key));
    }
    text
}

/// Returns the route of a server. `advisory` forwards every call; otherwise an operator's commitment bounds them.
pub fn route(path: &str, server: &StdioServer, advisory: bool) -> String {
    let command: Vec<String> = server.command.iter().map(|part| quoted(part)).collect();
    let mut text = format!("\n[[route]]\npath = {}\ncommand = [{}]\n", quoted(path), command.join(", "));
    if !server.env.is_empty() {
        let usual = gateway::limits::PASSED_ENV.iter().copied();
        let names: Vec<String> = usual.chain(server.env.iter().map(String::as_str)).map(quoted).collect();
        let _ = writeln!(text, "pass_env = [{}]", names.join(", "));
    }
    match advisory {
        true => text.push_str("without_vap = \"advisory\"\n"),
        false => {
            let goal =
                quoted(&format!("Calls of the server {} by an MCP client on this machine", server.name));
            let _ = write!(
                text,
                "without_vap = \"commitment\"\n\n\
                 [route.commitment]                      # what each session of the client may do\n\
                 goal = {goal}\n\
                 tools_allow = [\"*\"]\n\
                 max_calls = {CALLS}\n\
                 lasts = \"24h\"\n"
            );
        }
    }
    text
}

/// Returns the path of a server's route, different from those that are taken.
pub fn path(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_~".contains(c) { c } else { '-' };
    let name: String = name.chars().take(MAX_PATH).map(plain).collect();
    let first = format!("/{}", if name.is_empty() { "server" } else { &name });
    let more = (2..u32::MAX).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(more).find(|path| !is_taken(path)).unwrap_or(first)
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}
