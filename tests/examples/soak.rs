//! A log, two witnesses and a monitor under load, killed and started again at random, for as long as you like:
//!
//! ```text
//! cargo run -p black-box --example soak -- 30              # minutes; on SQLite
//! ./test --run cargo run -p black-box --example soak -- 30 postgres
//! cargo run -p black-box --example soak -- 30 sqlite 7     # with this seed
//! ```
//!
//! Prints what was done as JSON, and ends with 1 at any false alarm, broken word or process that did not come back.

use std::process::ExitCode;
use std::time::Duration;

use black_box::{Log, Soak};

/// The longest time between two restarts.
const CALM: Duration = Duration::from_secs(12);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let minutes: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(30);
    let log = match arguments.next().as_deref() {
        Some("postgres") => Log::postgres(),
        _ => Log::sqlite(),
    };
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let soak = Soak { lasting: Duration::from_secs(60 * minutes), calm_for: CALM, seed };
    let soaked = soak.on(&log);
    println!("{:#}", soaked.told);
    soaked.wrong.iter().for_each(|wrong| eprintln!("wrong: {wrong}"));
    if soaked.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
