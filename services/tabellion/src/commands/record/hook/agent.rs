//! The coding agents whose sessions hooks record: the names of their events and the places of their files.

use std::path::PathBuf;

use clap::ValueEnum;

/// A coding agent with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodingAgent {
    /// `SessionEnd` in the `hooks` of `settings.json`.
    ClaudeCode,
    /// `notify` in `config.toml`, after each turn.
    Codex,
    /// `sessionEnd` in `hooks.json`.
    Cursor,
}

impl CodingAgent {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
        }
    }

    /// The folder of the agent's configuration and sessions; `None` without a home folder.
    pub fn folder(self) -> Option<PathBuf> {
        let (variable, name) = match self {
            Self::ClaudeCode => (Some("CLAUDE_CONFIG_DIR"), ".claude"),
            Self::Codex => (Some("CODEX_HOME"), ".codex"),
            Self::Cursor => (None, ".cursor"),
        };
        let named = variable.and_then(std::env::var_os).filter(|folder| !folder.is_empty());
        named.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(name)))
    }

    /// The name of the configuration file with the hooks, in [`folder`](Self::folder).
    pub fn configuration(self) -> &'static str {
        match self {
            Self::ClaudeCode => "settings.json",
            Self::Codex => "config.toml",
            Self::Cursor => "hooks.json",
        }
    }
}
