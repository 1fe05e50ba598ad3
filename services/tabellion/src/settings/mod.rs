//! Settings from four sources: flags, environment, one file, defaults, in order of precedence.
//!
//! Only the first file found is read; files are never merged. Each value records its source, which `config show`
//! prints. Callers convert values ([`Settings::get`]) and report all mistakes together.

pub mod daemon_file;
mod flags;
mod table;

use std::path::{Path, PathBuf};

use figment::providers::{Format, Serialized, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Profile};
use serde::de::DeserializeOwned;

use crate::console::{Exit, Failure};
pub use flags::{KeeperFlags, SettingFlags};
pub use table::{SETTINGS, Setting, setting};

/// The name of the configuration file, in a log's folder and in the default folders.
pub const CONFIG_FILE: &str = "tabellion.toml";
/// The prefix of environment variables for [`SETTINGS`].
const ENV_PREFIX: &str = "TABELLION_";
/// The suffix of variables that name a file with the value, for secrets.
const ENV_FILE_SUFFIX: &str = "_FILE";
/// The replacement for secrets in output.
const MASK: &str = "***";
/// The prefixes of test variables, which begin with [`ENV_PREFIX`] and are not settings.
const NOT_SETTINGS: &[&str] = &["TABELLION_TEST_", "TABELLION_CRASH_"];

/// The values from all sources. Only keys are checked here.
#[derive(Clone, Debug)]
pub struct Settings {
    figment: Figment,
    file: Option<PathBuf>,
}

/// A value with its source, for output.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SettingView {
    /// The setting's key.
    pub key: &'static str,
    /// The value as JSON; secrets are masked.
    pub value: serde_json::Value,
    /// The source: `flag`, `environment`, the file's name, or `default`.
    pub source: String,
}

/// A setting whose value [`Settings::get`] or a caller rejects.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SettingError {
    /// The setting's key.
    pub key: String,
    /// A description of the error.
    pub what: String,
}

impl Settings {
    /// Gathers the values of all sources. `named` is the file in `--config`; `flags` are the settings on the command
    /// line.
    pub fn gather(named: Option<&Path>, flags: Vec<(&'static str, String)>) -> Result<Self, Failure> {
        let file = match named {
            Some(path) if !path.is_file() => return Err(no_such_file(path)),
            Some(path) => Some(path.to_path_buf()),
            None => default_files().into_iter().find(|path| path.is_file()),
        };
        let mut figment = Figment::from(layer("default", defaults()));
        if let Some(path) = &file {
            figment = figment.merge(Toml::file_exact(path));
            refuse_unknown_keys(path)?;
        }
        figment = figment.merge(layer("environment", environment()?)).merge(layer("flag", typed(flags)));
        Ok(Self { figment, file })
    }

    /// Creates settings from these values and the defaults only.
    pub fn of(values: Vec<(&'static str, String)>) -> Self {
        let figment = Figment::from(layer("default", defaults())).merge(layer("flag", typed(values)));
        Self { figment, file: None }
    }

    /// Converts the value of a setting; `None` if no source provides one.
    pub fn get<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, SettingError> {
        match self.figment.extract_inner::<T>(key) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.missing() => Ok(None),
            Err(error) => Err(SettingError { key: key.into(), what: one_line(&error.to_string()) }),
        }
    }

    /// Returns all settings that have a value, with their sources.
    pub fn show(&self) -> Vec<SettingView> {
        SETTINGS.iter().filter_map(|setting| self.show_one(setting)).collect()
    }

    /// Returns a path setting, resolved as by [`relative`](Self::relative).
    pub fn path(&self, key: &'static str) -> Result<Option<PathBuf>, SettingError> {
        let path: Option<PathBuf> = self.get(key)?;
        Ok(path.map(|path| self.relative(key, path)))
    }

    /// Resolves a path in the value of the setting `key`. A path from flags or the environment is relative to the
    /// working directory, any other to the folder of the configuration file, if there is one.
    pub fn relative(&self, key: &str, path: PathBuf) -> PathBuf {
        self.base_of(key).join(path)
    }

    /// Returns whether a configuration file was read.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether no source other than the defaults provides the setting.
    pub fn is_default(&self, key: &str) -> bool {
        self.source_of(key) == "default"
    }

    fn base_of(&self, key: &str) -> PathBuf {
        let from_command_line = matches!(self.source_of(key).as_str(), "flag" | "environment");
        match &self.file {
            Some(file) if !from_command_line => file.parent().map(Path::to_path_buf).unwrap_or_default(),
            _ => PathBuf::new(),
        }
    }

    fn show_one(&self, setting: &'static Setting) -> Option<SettingView> {
        let value: serde_json::Value = self.figment.extract_inner(setting.key).ok()?;
        let value = if setting.secret { masked(&value) } else { value };
        Some(SettingView { key: setting.key, value, source: self.source_of(setting.key) })
    }

    /// Returns the secret settings with a password that were passed as flags, which every user of the machine can see
    /// in the list of processes.
    pub fn passwords_on_the_command_line(&self) -> Vec<&'static str> {
        self.secrets_with_password().filter(|key| self.source_of(key) == "flag").collect()
    }

    /// Returns the configuration file, if a secret setting in it contains a password.
    pub fn file_with_password(&self) -> Option<(&'static str, &Path)> {
        let file = self.file.as_deref()?;
        let key =
            self.secrets_with_password().find(|key| self.source_of(key) == file.display().to_string())?;
        Some((key, file))
    }

    fn secrets_with_password(&self) -> impl Iterator<Item = &'static str> {
        SETTINGS
            .iter()
            .filter(|setting| setting.secret)
            .map(|setting| setting.key)
            .filter(|key| matches!(self.get::<String>(key), Ok(Some(value)) if has_password(&value)))
    }

    fn source_of(&self, key: &str) -> String {
        let Some(metadata) = self.figment.find_metadata(key) else { return "default".into() };
        match (&metadata.source, &self.file) {
            (Some(_), Some(file)) => file.display().to_string(),
            _ => metadata.name.to_string(),
        }
    }
}

/// Combines mistakes into one failure, `setting-unusable`, that lists all of them.
pub fn refuse(mistakes: Vec<SettingError>) -> Failure {
    let many = mistakes.len();
    let what =
        if many == 1 { "a setting cannot be used".into() } else { format!("{many} settings cannot be used") };
    let failure = Failure::new(Exit::Usage, "setting-unusable", what).hint("tabellion config show");
    mistakes.into_iter().fold(failure, |failure, mistake| failure.fact(mistake.key, mistake.what))
}

/// Returns the default paths of the configuration file, in order of precedence; the first is [`CONFIG_FILE`] in the
/// working directory.
pub fn default_files() -> Vec<PathBuf> {
    let home = || folder_of_variable("HOME").map(|home| home.join(".config"));
    let personal = folder_of_variable("XDG_CONFIG_HOME").or_else(home);
    [
        Some(PathBuf::new()),
        folder_of_variable("CONFIGURATION_DIRECTORY"),
        personal.map(|path| path.join("tabellion")),
        Some(PathBuf::from("/etc/tabellion")),
    ]
    .into_iter()
    .flatten()
    .map(|folder| folder.join(CONFIG_FILE))
    .collect()
}

/// Returns the folder in this environment variable, unless it is empty.
fn folder_of_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn defaults() -> Dict {
    let mut values: Dict =
        SETTINGS.iter().filter_map(|setting| Some((setting.key.into(), parse(setting.default?)))).collect();
    // systemd's StateDirectory= is a better default than a folder in the working directory.
    if let Ok(folder) = std::env::var("STATE_DIRECTORY") {
        values.insert("state_dir".into(), Value::from(folder));
    }
    values
}

fn environment() -> Result<Dict, Failure> {
    let mut values = Dict::new();
    for (name, value) in std::env::vars().filter(|(name, _)| is_setting_variable(name)) {
        let key = name[ENV_PREFIX.len()..].to_ascii_lowercase();
        if setting(&key).is_some() {
            values.insert(key, parse(&value));
        } else if let Some(known) =
            name.strip_suffix(ENV_FILE_SUFFIX).map(|name| name[ENV_PREFIX.len()..].to_ascii_lowercase())
            && setting(&known).is_some()
        {
            values.insert(known, Value::from(first_line_of(&name, Path::new(&value))?));
        } else {
            return Err(unknown_key(&name, &key, "environment"));
        }
    }
    Ok(values)
}

fn is_setting_variable(name: &str) -> bool {
    name.starts_with(ENV_PREFIX) && !NOT_SETTINGS.iter().any(|prefix| name.starts_with(prefix))
}

fn first_line_of(name: &str, path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Exit::Usage,
            "setting-unreadable",
            format!("{name}: cannot read {}: {error}", path.display()),
        )
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn typed(flags: Vec<(&'static str, String)>) -> Dict {
    flags.into_iter().map(|(key, value)| (key.to_owned(), parse(&value))).collect()
}

/// Parses `true`, `12` and `["a"]` as typed values; anything else is text.
fn parse(text: &str) -> Value {
    text.parse().unwrap_or_else(|never: std::convert::Infallible| match never {})
}

fn layer(name: &'static str, values: Dict) -> impl figment::Provider {
    struct Named<T>(&'static str, T);
    impl<T: figment::Provider> figment::Provider for Named<T> {
        fn metadata(&self) -> figment::Metadata {
            figment::Metadata::named(self.0)
        }
        fn data(&self) -> Result<figment::value::Map<Profile, Dict>, figment::Error> {
            self.1.data()
        }
    }
    Named(name, Serialized::defaults(values))
}

fn refuse_unknown_keys(path: &Path) -> Result<(), Failure> {
    let text = crate::console::files::read_text(path)?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Failure::new(
            Exit::Usage,
            "setting-unusable",
            format!("{} is not TOML: {}", path.display(), one_line(&error.to_string())),
        )
    })?;
    let mut unknown = table.keys().filter(|key| setting(key).is_none());
    let Some(first) = unknown.next() else { return Ok(()) };
    let failure = unknown_key(first, first, &path.display().to_string());
    Err(unknown.fold(failure, |failure, key| failure.fact("also unknown", key)))
}

fn unknown_key(written: &str, key: &str, source: &str) -> Failure {
    let failure =
        Failure::new(Exit::Usage, "setting-unknown", format!("{source}: there is no setting {written}"));
    match table::nearest(key) {
        Some(near) => failure.hint(format!("use {near}")),
        None => failure.hint("tabellion config env"),
    }
}

fn no_such_file(path: &Path) -> Failure {
    Failure::new(
        Exit::NotFound,
        "config-not-found",
        format!("there is no configuration file {}", path.display()),
    )
    .hint("tabellion init")
}

/// Masks the password in a database URL ([`without_password`]), and other secrets entirely.
fn masked(value: &serde_json::Value) -> serde_json::Value {
    value.as_str().map_or_else(|| MASK.into(), without_password).into()
}

/// Returns a URL with its password masked, both in the authority and in the query; [`MASK`] if it cannot be parsed.
pub fn without_password(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else { return MASK.into() };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.into();
    }
    if url.query().is_some() {
        let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let shown = |name: &str, value: String| if name == "password" { MASK.to_owned() } else { value };
        url.query_pairs_mut()
            .clear()
            .extend_pairs(query.into_iter().map(|(name, value)| (name.clone(), shown(&name, value))));
    }
    url.into()
}

/// Returns whether a URL contains a password.
pub fn has_password(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
