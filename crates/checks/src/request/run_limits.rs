//! The bounds of the runs of a request.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Members, RequestError, bounded, only};
use crate::limits;

/// The bounds of the runs: each of one run, but for `total_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Units of work, for engines that count them; for tier 3 the solvers' resource units.
    pub fuel: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Bytes of standard output, standard error and returned value, each.
    pub output_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Wall time in milliseconds.
    pub time_ms: u64,
    /// Wall time of all checks together, in milliseconds.
    pub total_ms: u64,
}

impl RunLimits {
    /// Reads the optional member `limits`; what it does not bound has the default of its tier.
    pub(super) fn read(top: &Members<'_>, tier: u64) -> Result<Self, RequestError> {
        let absent = Value::Object(serde_json::Map::new());
        let given = match top.optional_object("limits")? {
            Some(given) => given,
            None => Members::of(&absent, top.pointer("limits"))?,
        };
        only(&given, &["fuel", "memory_bytes", "output_bytes", "processes", "time_ms", "total_ms"])?;
        let (default_fuel, most_fuel) = match tier {
            3 => (limits::DEFAULT_SOLVER_FUEL, limits::SOLVER_FUEL),
            _ => (limits::DEFAULT_FUEL, limits::FUEL),
        };
        let processes = bounded(&given, "processes", 1..=limits::PROCESSES, limits::DEFAULT_PROCESSES)?;
        Ok(Self {
            fuel: bounded(&given, "fuel", 1..=most_fuel, default_fuel)?,
            memory_bytes: bounded(
                &given,
                "memory_bytes",
                limits::MIN_MEMORY..=limits::MEMORY,
                limits::DEFAULT_MEMORY,
            )?,
            output_bytes: bounded(&given, "output_bytes", 1..=limits::OUTPUT, limits::DEFAULT_OUTPUT)?,
            processes: u32::try_from(processes).unwrap_or(u32::MAX),
            time_ms: bounded(&given, "time_ms", 1..=limits::TIME_MS, limits::DEFAULT_TIME_MS)?,
            total_ms: bounded(&given, "total_ms", 1..=limits::TOTAL_MS, limits::DEFAULT_TOTAL_MS)?,
        })
    }

    /// Returns the bounds of one run.
    #[must_use]
    pub fn of_one_run(&self) -> sandbox::Limits {
        sandbox::Limits {
            fuel: self.fuel,
            memory: self.memory_bytes,
            output: self.output_bytes,
            processes: self.processes,
            time: Duration::from_millis(self.time_ms),
        }
    }

    /// Returns all bounds, as a request has them.
    #[must_use]
    pub fn members(&self) -> Value {
        json!({
            "fuel": self.fuel,
            "memory_bytes": self.memory_bytes,
            "output_bytes": self.output_bytes,
            "processes": self.processes,
            "time_ms": self.time_ms,
            "total_ms": self.total_ms,
        })
    }
}
