//! The configuration file of an MCP client: its servers on stdio, and edits of them that leave everything else as it was
//! written.
//!
//! Read are the members of `mcpServers` (Claude Desktop, Claude Code, Cursor, Gemini CLI) or `servers` (VS Code) that
//! have a `command`. Servers over HTTP have none.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The members that may hold the servers.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// The servers of a client, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientServers {
    /// Those on stdio.
    pub on_stdio: Vec<StdioServer>,
    /// The names of the others.
    pub others: Vec<String>,
}

/// A server on stdio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioServer {
    /// The name in the file.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The names of the environment variables that the file sets.
    pub env: Vec<String>,
    /// The position of `command` and `args` in the file; without `args`, that of `command` twice.
    command_at: Range<usize>,
    args_at: Option<Range<usize>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    env: BTreeMap<String, serde_json::Value>,
}

/// Returns the servers.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn servers(text: &str) -> Result<ClientServers, String> {
    let limits = jose::json::Limits { bytes: text.len(), depth: jose::json::MAX_DEPTH };
    jose::json::check(text.as_bytes(), limits).map_err(|error| format!("it is not strict JSON: {error}"))?;
    let wrong = |error: serde_json::Error| format!("it is not a client's configuration: {error}");
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(wrong)?;
    let Some(servers) = SERVERS.iter().find_map(|name| members.get(*name)) else {
        return Err("it has no member mcpServers or servers".to_owned());
    };
    let servers: BTreeMap<String, &RawValue> = serde_json::from_str(servers.get()).map_err(wrong)?;
    let mut found = ClientServers::default();
    for (name, raw) in servers {
        let entry: Entry<'_> =
            serde_json::from_str(raw.get()).map_err(|error| format!("server {name}: {error}"))?;
        let Some(program) = entry.command else {
            found.others.push(name);
            continue;
        };
        let wrong = |error: serde_json::Error| format!("server {name}: command or args: {error}");
        let mut command = vec![serde_json::from_str(program.get()).map_err(wrong)?];
        if let Some(args) = entry.args {
            command.extend(serde_json::from_str::<Vec<String>>(args.get()).map_err(wrong)?);
        }
        found.on_stdio.push(StdioServer {
            command,
            env: entry.env.into_keys().collect(),
            command_at: place(text, program),
            args_at: entry.args.map(|args| place(text, args)),
            name,
        });
    }
    Ok(found)
}

/// Returns the text with other commands for these servers.
pub fn with_commands(text: &str, commands: &[(&StdioServer, Vec<String>)]) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (server, command) in commands {
        let (program, args) =
            command.split_first().map_or(("", [].as_slice()), |(first, rest)| (first, rest));
        let program = serde_json::json!(program).to_string();
        let args = serde_json::json!(args).to_string();
        match &server.args_at {
            Some(args_at) => {
                edits.push((server.command_at.clone(), program));
                edits.push((args_at.clone(), args));
            }
            None => edits.push((server.command_at.clone(), format!("{program}, \"args\": {args}"))),
        }
    }
    edits.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
    let mut edited = text.to_owned();
    for (at, with) in edits {
        edited.replace_range(at, &with);
    }
    edited
}

/// Returns the position of a value that was parsed from this text without a copy.
fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    start..start.saturating_add(value.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  "theme": "dark",
  "mcpServers": {
    "time": { "command": "mcp-server-time", "env": { "TZ": "UTC" } },
    "web": { "url": "https://mcp.example/mcp" },
    "files": { "args": ["-y", "server \"files\""], "command": "npx" }
  }
}
"#;

    #[test]
    fn servers_on_stdio_are_found_and_those_over_http_are_named() {
        let found = servers(FILE).unwrap();
        let names: Vec<&str> = found.on_stdio.iter().map(|server| server.name.as_str()).collect();
        assert_eq!((names, found.others), (vec!["files", "time"], vec!["web".to_owned()]));
        assert_eq!(found.on_stdio[0].command, ["npx", "-y", "server \"files\""]);
        assert_eq!(found.on_stdio[1].env, ["TZ"]);
    }

    #[test]
    fn an_edit_changes_commands_only_and_its_reverse_restores_every_other_byte() {
        let found = servers(FILE).unwrap().on_stdio;
        let ours = |name: &str| vec!["tabellion".to_owned(), name.to_owned()];
        let commands: Vec<_> = found.iter().map(|server| (server, ours(&server.name))).collect();
        let edited = with_commands(FILE, &commands);
        assert!(
            edited
                .contains(r#""time": { "command": "tabellion", "args": ["time"], "env": { "TZ": "UTC" } }"#)
        );
        assert!(edited.contains(r#""files": { "args": ["files"], "command": "tabellion" }"#));
        assert!(edited.starts_with("{\n  \"theme\": \"dark\",\n"));
    }

    #[test]
    fn a_file_that_is_no_clients_configuration_is_refused() {
        for (text, why) in [
            ("{}", "no member mcpServers"),
            ("{\"mcpServers\": {}, \"mcpServers\": {}}", "not strict JSON"),
            ("// c\n{}", "not strict JSON"),
            ("{\"mcpServers\": {\"a\": {\"command\": 1}}}", "server a"),
        ] {
            let refused = servers(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
