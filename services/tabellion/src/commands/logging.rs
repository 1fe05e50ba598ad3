//! The service's log on stderr, one line per event.

use std::io::stderr;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::console::{Console, Failure};
use crate::settings::{self, SettingError, Settings};

/// A further tracing layer that receives events and spans.
pub type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// A handle that changes the log level of a running service.
pub struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Starts logging with the settings `log_format` and `log_level`, with a further layer that receives events and spans
    /// of all levels.
    pub fn start(settings: &Settings, other: Option<Listener>, console: &Console) -> Result<Self, Failure> {
        let level = level(settings).map_err(one)?;
        let (filter, handle) = reload::Layer::new(level);
        let json = is_json(settings).map_err(one)?;
        let lines = fmt::layer().with_writer(stderr).with_target(false).with_ansi(console.colours_stderr());
        let lines = match json {
            true => lines.json().with_filter(filter).boxed(),
            false => lines.with_filter(filter).boxed(),
        };
        let all: Vec<Listener> = std::iter::once(lines).chain(other).collect();
        tracing_subscriber::registry().with(all).init();
        Ok(Self(handle))
    }

    /// Starts logging for a service with its own configuration file: format and level come from `TABELLION_LOG_FORMAT`
    /// and `TABELLION_LOG_LEVEL` only.
    pub fn of_environment(usual: &str, console: &Console) -> Result<Self, Failure> {
        Self::at_usual_level(None, usual, console)
    }

    /// Starts logging, with a further layer that receives events and spans of all levels.
    pub fn at_usual_level(other: Option<Listener>, usual: &str, console: &Console) -> Result<Self, Failure> {
        let or = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
        let level = ("log_level", or("TABELLION_LOG_LEVEL", usual));
        let format = ("log_format", or("TABELLION_LOG_FORMAT", "text"));
        Self::start(&Settings::of(vec![level, format]), other, console)
    }

    /// Applies the setting `log_level` of a reloaded configuration.
    pub fn reload(&self, settings: &Settings) -> Result<(), Failure> {
        let level = level(settings).map_err(one)?;
        if let Err(error) = self.0.reload(level) {
            tracing::error!(%error, "the log level stays as it was");
        }
        Ok(())
    }
}

/// Returns what is wrong with the settings `log_format` and `log_level`.
pub fn mistakes(settings: &Settings) -> Vec<SettingError> {
    [is_json(settings).err(), level(settings).err()].into_iter().flatten().collect()
}

/// Returns whether the log format is JSON.
pub fn for_machines(settings: &Settings) -> bool {
    is_json(settings).unwrap_or(false)
}

fn is_json(settings: &Settings) -> Result<bool, SettingError> {
    let format: Option<String> = settings.get("log_format")?;
    match format.as_deref() {
        Some("json") => Ok(true),
        Some("text") | None => Ok(false),
        Some(other) => Err(SettingError {
            key: "log_format".into(),
            what: format!("{other:?} is neither text nor json"),
        }),
    }
}

/// Returns the filter: the configured level for our own code, and at most `warn` for libraries.
fn level(settings: &Settings) -> Result<EnvFilter, SettingError> {
    let name: String = settings.get("log_level")?.unwrap_or_default();
    let level: LevelFilter = name.parse().map_err(|_| SettingError {
        key: "log_level".into(),
        what: format!("{name:?} is not error, warn, info, debug or trace"),
    })?;
    let libraries = level.min(LevelFilter::WARN);
    Ok(["hyper", "rustls", "sqlx", "h2", "reqwest", "opentelemetry"].iter().fold(
        EnvFilter::new(level.to_string()),
        |filter, library| match format!("{library}={libraries}").parse() {
            Ok(directive) => filter.add_directive(directive),
            Err(_) => filter,
        },
    ))
}

fn one(mistake: SettingError) -> Failure {
    settings::refuse(vec![mistake])
}
