//! The options that every command takes, and the console and settings that result from them.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::console::{Color, Console, Failure};
use crate::dev_files::DEV_CONFIG;
use crate::settings::{Settings, default_files};

/// The options that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_display_order = 900)]
pub struct GlobalArgs {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", hide = true)]
    pub color: Color,
    /// Draw no progress bar
    #[arg(long, global = true, hide = true)]
    pub no_progress: bool,
    /// Print the result only: no progress, hints or remarks
    #[arg(long, global = true, hide = true)]
    pub quiet: bool,
    /// Read this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The console and the configuration file of a command.
pub struct Context {
    pub console: Console,
    config: Option<PathBuf>,
}

impl Context {
    /// The file in `--config`.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns the context for a client of a log, of a command whose `--config` names the file of a gateway.
    pub fn without_config(&self) -> Self {
        Self { console: self.console, config: None }
    }

    /// Returns the context for commands whose results are returned and not printed: they print nothing at all.
    pub fn for_results(&self) -> Self {
        let console = Console { json: true, progress: false, ..self.console };
        Self { console, config: self.config.clone() }
    }

    /// Returns the settings of the log whose keys or database a command uses. If no configuration file is named or
    /// found, they are those of the log that `serve --dev` created in this folder ([`DEV_CONFIG`]).
    pub fn log_settings(&self, flags: Vec<(&'static str, String)>) -> Result<Settings, Failure> {
        let configured = self.config.is_some() || default_files().iter().any(|file| file.is_file());
        let dev = Some(Path::new(DEV_CONFIG)).filter(|file| !configured && file.is_file());
        Settings::gather(dev.or(self.config.as_deref()), flags)
    }

    /// Returns the settings from all sources; `flags`, from the command line, take precedence.
    pub fn settings(&self, flags: Vec<(&'static str, String)>) -> Result<Settings, Failure> {
        Settings::gather(self.config.as_deref(), flags)
    }
}

impl From<&GlobalArgs> for Context {
    fn from(global: &GlobalArgs) -> Self {
        let console = Console {
            json: global.json,
            color: global.color,
            progress: !global.no_progress,
            quiet: global.quiet,
        };
        Self { console, config: global.config.clone() }
    }
}
