//! What the tests of a long run did, counted for its report.
//!
//! `tests/long` names a file in [`FILE`], to which each event adds a line, and a number in [`SEED`] from which random
//! choices follow. Without them nothing is counted, and the choices differ with each run.

use std::fs::File;
use std::io::Write as _;

/// Names the file of the counts.
const FILE: &str = "TABELLION_TEST_TALLY";
/// Names the seed.
const SEED: &str = "TABELLION_TEST_SEED";

/// Adds to the count of an event.
pub fn count(event: &str, times: usize) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut file = File::options().append(true).create(true).open(&path).expect("the file of the counts");
    // One write: several processes add to the file.
    file.write_all(format!("{event}\t{times}\n").as_bytes()).expect("the file of the counts");
}

/// Seeds the random choices of this thread, and gives the seed, which a failed test shows.
pub fn seed() -> u64 {
    let given = std::env::var(SEED).ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("a number"));
    fastrand::seed(seed);
    eprintln!("{SEED}={seed}");
    seed
}
