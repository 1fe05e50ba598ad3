//! What the service says about itself while it runs: one line an event, on stderr.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::console::{Console, Failure};
use crate::settings::{self, Mistake, Settings};

/// Whoever hears what the code says about itself.
pub type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// Changes the level of a running service.
pub struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Starts logging as the settings say.
    pub fn start(settings: &Settings, console: &Console) -> Result<Self, Failure> {
        Self::beside(settings, console, None)
    }

    fn beside(settings: &Settings, console: &Console, other: Option<Listener>) -> Result<Self, Failure> {
        let level = level(settings)?;
        let (filter, handle) = reload::Layer::new(level);
        let json = for_machines(settings);
        let lines = fmt::layer()
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal())
            .with_target(false)
            .with_ansi(console.colours_stderr());
        let lines = match json {
            true => lines.json().with_filter(filter).boxed(),
            false => lines.with_filter(filter).boxed(),
        };
        let all: Vec<Listener> = std::iter::once(lines).chain(other).collect();
        tracing_subscriber::registry().with(all).init();
        Ok(Self(handle))
    }

    /// The same for a service whose file is its own: only the environment says how.
    pub fn of_environment(usual: &str, console: &Console) -> Result<Self, Failure> {
        Self::heard_by(None, usual, console)
    }

    /// The same, with somebody else who hears of everything, whatever the level.
    pub fn heard_by(other: Option<Listener>, usual: &str, console: &Console) -> Result<Self, Failure> {
        let or = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
        let level = ("log_level", or("TABELLION_LOG_LEVEL", usual));
        let format = ("log_format", or("TABELLION_LOG_FORMAT", "text"));
        Self::beside(&Settings::of(vec![level, format]), console, other)
    }

    /// Takes up the level of new settings.
    pub fn reload(&self, settings: &Settings) -> Result<(), Failure> {
        let level = level(settings)?;
        if let Err(error) = self.0.reload(level) {
            tracing::error!(%error, "the log level stays as it was");
        }
        Ok(())
    }
}

/// Whether stderr is read by a program.
pub fn for_machines(settings: &Settings) -> bool {
    matches!(settings.get::<String>("log_format"), Ok(Some(format)) if format == "json")
}

/// Our own level for our own code; libraries only speak up when something is wrong.
fn level(settings: &Settings) -> Result<EnvFilter, Failure> {
    let name: String = settings.get("log_level").map_err(one)?.unwrap_or_default();
    let level: LevelFilter = name.parse().map_err(|_| {
        one(Mistake {
            key: "log_level".into(),
            what: format!("{name:?} is not error, warn, info, debug or trace"),
        })
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

fn one(mistake: Mistake) -> Failure {
    settings::refuse(vec![mistake])
}
