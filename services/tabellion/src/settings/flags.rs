//! Command-line flags for all settings, derived from the table [`SETTINGS`] so that names agree.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::table::{SETTINGS, Setting};

/// The settings listed by `serve --help`; `config env` lists the others.
const SERVING: &[&str] = &["db", "listen", "admin_listen", "policy", "tls_cert", "tls_key"];
/// The settings listed in the help of commands with [`KeeperFlags`].
const KEEPING: &[&str] = &["db", "state_dir"];

/// The settings on the command line.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags(Vec<(&'static str, String)>);

impl SettingFlags {
    /// Returns keys and values, for [`Settings::gather`](super::Settings::gather).
    pub fn typed(&self) -> Vec<(&'static str, String)> {
        self.0.clone()
    }

    /// Returns keys and values, with further settings from the command; the command line takes precedence.
    pub fn or(&self, decided: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
        let typed = |key| self.0.iter().any(|(known, _)| *known == key);
        let decided = decided.into_iter().filter(|(key, _)| !typed(*key));
        self.0.iter().cloned().chain(decided).collect()
    }
}

/// The flags of [`SettingFlags`] for commands that do not serve; their help lists fewer of them.
#[derive(Clone, Debug, Default)]
pub struct KeeperFlags(SettingFlags);

impl std::ops::Deref for KeeperFlags {
    type Target = SettingFlags;

    fn deref(&self) -> &SettingFlags {
        &self.0
    }
}

impl Args for KeeperFlags {
    fn augment_args(command: Command) -> Command {
        all_flags(command, KEEPING)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KeeperFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        SettingFlags::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        all_flags(command, SERVING)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |setting: &Setting| Some((setting.key, matches.get_one::<String>(setting.key)?.clone()));
        Ok(Self(SETTINGS.iter().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn all_flags(command: Command, shown: &[&str]) -> Command {
    SETTINGS
        .iter()
        .fold(command, |command, setting| command.arg(flag(setting).hide(!shown.contains(&setting.key))))
}

fn flag(setting: &'static Setting) -> Arg {
    let arg =
        Arg::new(setting.key).long(setting.key.replace('_', "-")).help(setting.about).value_name("VALUE");
    match setting.default {
        // A boolean flag needs no value: --plaintext.
        Some("false") => arg.num_args(0..=1).default_missing_value("true").require_equals(true),
        _ => arg,
    }
}
