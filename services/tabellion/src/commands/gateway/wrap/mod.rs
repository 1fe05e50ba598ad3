//! `tabellion gateway wrap`: rewrites the configuration of an MCP client so that each of its servers on stdio runs behind
//! the gateway, and undoes that.
//!
//! For `mcp.json`, the gateway's configuration is `mcp.tabellion.toml` beside it. Each server there gets a route, whose
//! command is the original one: an undo takes it from there.

mod client_file;
mod gateway_file;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gateway::Config;
use gateway::config::{Server, UpstreamConfig};
use serde::Serialize;

use self::client_file::{ClientServers, StdioServer};
use self::gateway_file::Target;
use super::{config_file, keys};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe, shell};
use crate::context::Context;
use crate::dev_files::{DEV_GATEWAY, DEV_GATEWAY_KEY, log_url};
use crate::state_folder::state_folder;
use crate::trust_file;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway wrap ~/.cursor/mcp.json --dev")]
pub struct Wrap {
    /// The client's configuration: mcp.json, .mcp.json, claude_desktop_config.json
    file: PathBuf,
    /// Send the records to the log of `serve --dev` in this folder
    #[arg(long, conflicts_with = "log")]
    dev: bool,
    /// The log [with --issuer, which its policy lists]
    #[arg(long, value_name = "URL", requires = "issuer")]
    log: Option<String>,
    /// The gateway's name in the log's policy
    #[arg(long, value_name = "URI", requires = "log")]
    issuer: Option<String>,
    /// The folder for keys and evidence [default: ~/.local/state/tabellion/gateway]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Forward every call, and only record it
    #[arg(long)]
    advisory: bool,
    /// Restore the original commands
    #[arg(long, conflicts_with_all = ["dev", "log", "issuer", "state", "advisory"])]
    undo: bool,
}

impl Wrap {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        // The file itself, also behind a link: the gateway's configuration stands beside it.
        let file =
            std::fs::canonicalize(&self.file).map_err(|error| files::unreadable(&self.file, &error))?;
        let text = files::read_text(&file)?;
        let servers = client_file::servers(&text).map_err(|why| {
            Failure::new(Exit::Usage, "client-config", cannot_use(&file)).fact("because", why)
        })?;
        let ours = file.with_extension("tabellion.toml");
        match self.undo {
            true => undo(context, (&file, &text), &ours, &servers.on_stdio),
            false => self.wrap(context, (&file, &text), &ours, servers),
        }
    }

    fn wrap(
        &self,
        context: &Context,
        (file, text): (&Path, &str),
        ours: &Path,
        servers: ClientServers,
    ) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .map_err(|error| files::unreadable(Path::new("/proc/self/exe"), &error))?;
        let (mut gateway, mut paths) = match ours.is_file() {
            true => (files::read_text(ours)?, routes(&config_file::read(ours)?)),
            false => (self.head(file)?, Vec::new()),
        };
        let mut commands = Vec::new();
        for server in servers.on_stdio.iter().filter(|server| !is_wrapped(server, ours)) {
            let path = gateway_file::path(&server.name, |path| paths.iter().any(|taken| taken == path));
            gateway.push_str(&gateway_file::route(&path, server, self.advisory));
            commands.push((server, through_gateway(&program, ours, &path)));
            paths.push(path);
        }
        // The gateway's file first: a client must not start a gateway without a configuration.
        files::write(ours, gateway.as_bytes(), Access::Secret, Existing::Replace)?;
        let config = config_file::read(ours)?;
        drop(gateway::keys::Keys::open(&config).map_err(keys::unusable)?);
        let wrapped = commands.iter().map(|(server, _)| server.name.clone()).collect();
        files::replace_keeping_access(file, client_file::with_commands(text, &commands).as_bytes())?;
        context.console.result(&Wrapped {
            client: path_text(file),
            gateway: path_text(ours),
            wrapped,
            left: servers.others,
            dev: self.dev,
        })
    }

    /// Returns the beginning of a new configuration of the gateway.
    fn head(&self, file: &Path) -> Result<String, Failure> {
        let state = state_folder(self.state.as_deref(), "--state", "gateway")?.join(folder_name(file));
        if let (Some(log), Some(issuer)) = (&self.log, &self.issuer) {
            let target = Target { issuer, log, trust: None, state: &state, key: None };
            return Ok(gateway_file::head(&target, file));
        }
        if !self.dev {
            return Err(Failure::new(Exit::Usage, "usage", "which log? --dev, or --log URL --issuer URI")
                .hint("tabellion gateway wrap mcp.json --dev"));
        }
        let (log, key) = (log_url(None)?, absolute(Path::new(DEV_GATEWAY_KEY))?);
        let trust = absolute(Path::new(trust_file::DEV)).ok();
        let target = Target {
            issuer: DEV_GATEWAY,
            log: &log,
            trust: trust.as_deref(),
            state: &state,
            key: Some(&key),
        };
        Ok(gateway_file::head(&target, file))
    }
}

/// Returns the name of the state folder for a client's file: readable, and different for each file.
fn folder_name(file: &Path) -> String {
    let digest = vap::digest::Digest::of(file.as_os_str().as_encoded_bytes()).to_string();
    let digits: String = digest.trim_start_matches("sha256:").chars().take(8).collect();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    format!("{}-{digits}", stem.trim_start_matches('.'))
}

fn undo(
    context: &Context,
    (file, text): (&Path, &str),
    ours: &Path,
    servers: &[StdioServer],
) -> Result<(), Failure> {
    let wrapped: Vec<&StdioServer> = servers.iter().filter(|server| is_wrapped(server, ours)).collect();
    let mut commands = Vec::new();
    if !wrapped.is_empty() {
        let config = config_file::read(ours)?;
        for server in wrapped {
            let path = server.command.last().map(String::as_str).unwrap_or_default();
            let original = config.route(path).and_then(|route| match &route.upstream {
                UpstreamConfig::One(Server::Command(server)) => Some(server.command.clone()),
                _ => None,
            });
            let original = original.ok_or_else(|| {
                Failure::new(
                    Exit::NotFound,
                    "client-config",
                    format!("the command of {} is not known", server.name),
                )
                .fact("file", path_text(ours))
                .fact("route", path)
            })?;
            commands.push((server, original));
        }
    }
    let restored = commands.iter().map(|(server, _)| server.name.clone()).collect();
    files::replace_keeping_access(file, client_file::with_commands(text, &commands).as_bytes())?;
    context.console.result(&Restored { client: path_text(file), gateway: path_text(ours), restored })
}

/// Returns the command with which a client starts the gateway for one route. The route is the last argument.
fn through_gateway(program: &Path, ours: &Path, path: &str) -> Vec<String> {
    let (program, ours) = (program.display().to_string(), ours.display().to_string());
    [&program, "gateway", "stdio", "--config", &ours, "--route", path].map(str::to_owned).to_vec()
}

fn is_wrapped(server: &StdioServer, ours: &Path) -> bool {
    let ours = ours.display().to_string();
    let [_, gateway, stdio, _, config, ..] = server.command.as_slice() else { return false };
    gateway == "gateway" && stdio == "stdio" && *config == ours
}

fn routes(config: &Config) -> Vec<String> {
    config.routes.iter().map(|route| route.path.clone()).collect()
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| files::unreadable(path, &error))
}

fn cannot_use(file: &Path) -> String {
    format!("{} cannot be used", file.display())
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// The result of wrapping.
#[derive(Serialize)]
struct Wrapped {
    client: String,
    gateway: String,
    wrapped: Vec<String>,
    /// Servers that are not on stdio.
    left: Vec<String>,
    dev: bool,
}

impl Report for Wrapped {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for name in &self.left {
            writeln!(out, "left       {}: it is not on stdio, and not behind this gateway", safe(name))?;
        }
        if self.wrapped.is_empty() {
            return writeln!(out, "{}: every server on stdio is behind the gateway", safe(&self.client));
        }
        for name in &self.wrapped {
            writeln!(out, "wrapped    {}", safe(name))?;
        }
        writeln!(out, "rules      {}", safe(&self.gateway))?;
        if !self.dev {
            writeln!(
                out,
                "policy     tabellion gateway keys --config {}",
                safe(&shell::quote(&self.gateway))
            )?;
        }
        writeln!(out, "undo       tabellion gateway wrap {} --undo", safe(&shell::quote(&self.client)))?;
        writeln!(out, "Restart the client: it reads its configuration when it starts.")
    }
}

/// The result of an undo.
#[derive(Serialize)]
struct Restored {
    client: String,
    gateway: String,
    restored: Vec<String>,
}

impl Report for Restored {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for name in &self.restored {
            writeln!(out, "restored   {}", safe(name))?;
        }
        writeln!(out, "{} and the evidence are kept.", safe(&self.gateway))
    }
}
