//! `tabellion config`: shows the effective settings with their sources, and checks them.

use std::io::{self, Write};

use clap::Subcommand;
use serde::Serialize;

use crate::cli::Context;
use crate::console::{Failure, Report, safe};
use crate::settings::{SETTINGS, Shown};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion config check --config /etc/tabellion/tabellion.toml")]
pub enum Config {
    /// Each value with its source; secrets are masked
    #[command(before_help = "example:  tabellion config show")]
    Show,
    /// Whether `serve` could start with it: every mistake at once
    #[command(before_help = "example:  tabellion config check --config /etc/tabellion/tabellion.toml")]
    Check,
    /// Every setting with its variable, default and meaning
    #[command(before_help = "example:  tabellion config env")]
    Env,
}

impl Config {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show => {
                context.console.result(&Effective { settings: context.settings(Vec::new())?.show() })
            }
            Self::Check => super::serve::check::check(context),
            Self::Env => context.console.result(&Catalogue::new()),
        }
    }
}

#[derive(Serialize)]
struct Effective {
    settings: Vec<Shown>,
}

impl Report for Effective {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.settings.iter().map(|shown| shown.key.len()).max().unwrap_or(0);
        for shown in &self.settings {
            let value = match shown.value.as_str() {
                Some(text) => text.to_owned(),
                None => shown.value.to_string(),
            };
            writeln!(out, "{:width$}  {}  ({})", shown.key, safe(&value), safe(&shown.source))?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Catalogue {
    settings: Vec<Described>,
}

#[derive(Serialize)]
struct Described {
    key: &'static str,
    variable: String,
    default: Option<&'static str>,
    about: &'static str,
    reloads: bool,
}

impl Catalogue {
    fn new() -> Self {
        let describe = |setting: &crate::settings::Setting| Described {
            key: setting.key,
            variable: format!("TABELLION_{}", setting.key.to_ascii_uppercase()),
            default: setting.default,
            about: setting.about,
            reloads: setting.reloads,
        };
        Self { settings: SETTINGS.iter().map(describe).collect() }
    }
}

impl Report for Catalogue {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for setting in &self.settings {
            let default = setting.default.map(|value| format!(" [{value}]")).unwrap_or_default();
            let reloads = if setting.reloads { " (reloads on SIGHUP)" } else { "" };
            writeln!(out, "{}{default}\n    {}{reloads}", setting.variable, setting.about)?;
        }
        Ok(())
    }
}
