//! Counts of events in a long test run, for its report.
//!
//! `tests/long` sets [`FILE`] to the name of a file, to which each event adds a line, and [`SEED`] to the seed of
//! random choices. Without them, no events are counted, and the choices differ in each run.

use std::fs::File;
use std::io::Write as _;

/// Variable with the name of the file for counts.
const FILE: &str = "TABELLION_TEST_TALLY";
/// Variable with the seed.
const SEED: &str = "TABELLION_TEST_SEED";

/// Adds to the count of an event.
pub fn count(event: &str, times: usize) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut file = File::options().append(true).create(true).open(&path).expect("the file of the counts");
    // A single write, as several processes append to the file.
    file.write_all(format!("{event}\t{times}\n").as_bytes()).expect("the file of the counts");
}

/// Seeds the random choices of this thread, and returns the seed, which a failed test shows.
pub fn seed() -> u64 {
    let given = std::env::var(SEED).ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("a number"));
    fastrand::seed(seed);
    eprintln!("{SEED}={seed}");
    seed
}
