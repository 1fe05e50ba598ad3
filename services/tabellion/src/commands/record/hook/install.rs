//! `tabellion record hook install`: adds the hook to the configuration of a coding agent, and removes it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::agent::CodingAgent;
use super::run::RecordingArgs;
use super::{json_hooks, notify};
use crate::console::{Exit, Failure, Report, files, safe, shell};
use crate::context::Context;
use crate::service::ServiceArgs;

/// The words of our command between the program and the agent's name.
const COMMAND: [&str; 3] = ["record", "hook", "run"];

#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("token_file", |token| token.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Install {
    /// The agent: claude-code, codex or cursor
    #[arg(hide_possible_values = true)]
    agent: CodingAgent,
    #[command(flatten)]
    recording: RecordingArgs,
    /// The agent's configuration [default: the user's own]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Remove the hook
    #[arg(long)]
    undo: bool,
}

impl Install {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let file = self.configuration()?;
        let text = match fs::metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            _ => Some(files::read_text(&file)?),
        };
        let edited = match self.undo {
            true => text.as_deref().map(|text| remove(self.agent, text)).transpose(),
            false => {
                let text = text.as_deref().unwrap_or(new_file(self.agent));
                add(self.agent, text, &command(self.agent, &self.recording)?).map(Some)
            }
        };
        let edited = edited.map_err(|why| unusable(&file, why))?;
        let is_changed = edited.is_some() && edited != text;
        if let Some(edited) = edited.filter(|_| is_changed) {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            files::replace_keeping_access(&file, edited.as_bytes())?;
        }
        let file = file.display().to_string();
        context.console.result(&Installed {
            agent: self.agent.name(),
            file,
            installed: !self.undo,
            is_changed,
        })
    }

    /// Returns the path of the agent's configuration, behind links.
    fn configuration(&self) -> Result<PathBuf, Failure> {
        let usual = || Some(self.agent.folder()?.join(self.agent.configuration()));
        let file = self
            .file
            .clone()
            .or_else(usual)
            .ok_or_else(|| Failure::new(Exit::Usage, "usage", "there is no home folder: --file FILE"))?;
        Ok(fs::canonicalize(&file).unwrap_or(file))
    }
}

/// The text of a configuration that is not there yet.
fn new_file(agent: CodingAgent) -> &'static str {
    match agent {
        CodingAgent::ClaudeCode => "{}\n",
        CodingAgent::Codex => "",
        CodingAgent::Cursor => "{\n  \"version\": 1\n}\n",
    }
}

/// Returns the command of the hook, with absolute paths: the agent starts it in any folder.
fn command(agent: CodingAgent, recording: &RecordingArgs) -> Result<Vec<String>, Failure> {
    let RecordingArgs { key, iss, output, register, trust, service } = recording;
    recording.recorder()?;
    let program = std::env::current_exe()?;
    let mut words = vec![files::path_text(&program)?];
    words.extend(COMMAND.map(str::to_owned));
    words.push(agent.name().to_owned());
    let paths = [("key", key.as_ref()), ("output", output.as_ref()), ("trust", trust.as_ref())];
    for (flag, path) in paths {
        if let Some(path) = path {
            words.extend([format!("--{flag}"), files::path_text(&std::path::absolute(path)?)?]);
        }
    }
    words.extend(iss.iter().map(|iss| format!("--iss={iss}")));
    if *register {
        words.push("--register".to_owned());
        words.extend(with_absolute_paths(service)?.to_flags()?);
    }
    Ok(words)
}

fn with_absolute_paths(service: &ServiceArgs) -> Result<ServiceArgs, Failure> {
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).transpose();
    let (cacert, token_file) = (absolute(&service.cacert)?, absolute(&service.token_file)?);
    Ok(ServiceArgs { cacert, token_file, ..service.clone() })
}

fn add(agent: CodingAgent, text: &str, command: &[String]) -> Result<String, String> {
    if agent == CodingAgent::Codex {
        let command = [command, &["--".to_owned()]].concat();
        return notify::add(text, &command, |words| is_our_command(agent, words));
    }
    let (event, element) = json_hook(agent, &shell::join(command));
    if json_hooks::list(text, event)?.iter().filter(|hook| is_our_hook(agent, hook)).eq([&element]) {
        return Ok(text.to_owned());
    }
    json_hooks::add(&remove(agent, text)?, event, &element)
}

fn remove(agent: CodingAgent, text: &str) -> Result<String, String> {
    if agent == CodingAgent::Codex {
        return notify::remove(text, |words| is_our_command(agent, words));
    }
    let (event, _) = json_hook(agent, "");
    json_hooks::remove(text, event, |hook| is_our_hook(agent, hook))
}

/// Returns the name of the event and the element of its list. Claude Code groups hooks by matcher.
fn json_hook(agent: CodingAgent, command: &str) -> (&'static str, Value) {
    match agent {
        CodingAgent::Cursor => ("sessionEnd", json!({ "command": command })),
        _ => ("SessionEnd", json!({ "hooks": [{ "type": "command", "command": command }] })),
    }
}

/// Returns whether the element starts our command, and nothing else.
fn is_our_hook(agent: CodingAgent, element: &Value) -> bool {
    let ours = format!(" {} {}", COMMAND.join(" "), agent.name());
    let starts_ours = |hook: &Value| hook["command"].as_str().is_some_and(|command| command.contains(&ours));
    match element["hooks"].as_array() {
        Some(hooks) => !hooks.is_empty() && hooks.iter().all(starts_ours),
        None => starts_ours(element),
    }
}

fn is_our_command(agent: CodingAgent, words: &[String]) -> bool {
    let [_, command @ ..] = words else { return false };
    COMMAND
        .iter()
        .copied()
        .chain([agent.name()])
        .eq(command.iter().map(String::as_str).take(COMMAND.len() + 1))
}

fn unusable(file: &Path, why: String) -> Failure {
    Failure::new(Exit::Usage, "hook-config", format!("{} cannot be edited", file.display()))
        .fact("because", why)
}

/// The result of adding or removing the hook.
#[derive(Serialize)]
struct Installed {
    agent: &'static str,
    file: String,
    installed: bool,
    #[serde(rename = "changed")]
    is_changed: bool,
}

impl Report for Installed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let what = match (self.installed, self.is_changed) {
            (true, true) => "added to",
            (true, false) => "already in",
            (false, true) => "removed from",
            (false, false) => "not in",
        };
        writeln!(out, "{what:13} {}", safe(&self.file))?;
        if self.installed {
            writeln!(out, "undo          tabellion record hook install {} --undo", self.agent)?;
        }
        Ok(())
    }
}
