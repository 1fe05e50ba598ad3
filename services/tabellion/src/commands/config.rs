//! `tabellion config`: shows the effective settings with their sources, and checks them.

use clap::Subcommand;
use serde::Serialize;

use crate::console::{Failure, members, safe};
use crate::context::Context;
use crate::settings::{SETTINGS, SettingView};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion config check --config /etc/tabellion/tabellion.toml")]
pub enum Config {
    /// Show each value with its source; secrets are masked
    #[command(before_help = "example:  tabellion config show")]
    Show,
    /// Check whether `serve` could start, and list all mistakes
    #[command(before_help = "example:  tabellion config check --config /etc/tabellion/tabellion.toml")]
    Check,
    /// List all settings with variable, default and description
    #[command(before_help = "example:  tabellion config env")]
    Env,
}

impl Config {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show => show(context),
            Self::Check => super::serve::check::check(context),
            Self::Env => list_settings(context),
        }
    }
}

#[derive(Serialize)]
struct Described {
    key: &'static str,
    variable: String,
    default: Option<&'static str>,
    about: &'static str,
    reloads: bool,
}

fn show(context: &Context) -> Result<(), Failure> {
    let settings = context.settings(Vec::new())?.show();
    let width = settings.iter().map(|shown| shown.key.len()).max().unwrap_or(0);
    context.console.print(&members! { settings: &settings }, |out| {
        settings.iter().try_for_each(|SettingView { key, value, source, .. }| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "{key:width$}  {}  ({})", safe(&value), safe(source))
        })
    })
}

fn list_settings(context: &Context) -> Result<(), Failure> {
    let describe = |setting: &crate::settings::Setting| Described {
        key: setting.key,
        variable: format!("TABELLION_{}", setting.key.to_ascii_uppercase()),
        default: setting.default,
        about: setting.about,
        reloads: setting.reloads,
    };
    let settings: Vec<_> = SETTINGS.iter().map(describe).collect();
    context.console.print(&members! { settings: &settings }, |out| {
        settings.iter().try_for_each(|Described { variable, default, about, reloads, .. }| {
            let default = default.map(|value| format!(" [{value}]")).unwrap_or_default();
            let reloads = if *reloads { " (reloads on SIGHUP)" } else { "" };
            writeln!(out, "{variable}{default}\n    {about}{reloads}")
        })
    })
}
