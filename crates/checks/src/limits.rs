//! Limits on requests, runs and receipts.

use std::time::Duration;

/// Maximum bytes of a request.
pub const REQUEST_BYTES: usize = 4 << 20;
/// Maximum nesting of arrays and objects in a request.
pub const REQUEST_DEPTH: usize = 48;
/// Maximum files of an artifact.
pub const FILES: usize = 256;
/// Maximum bytes of all files of an artifact together.
pub const ARTIFACT_BYTES: usize = 2 << 20;
/// Maximum bytes of a file's path.
pub const PATH_BYTES: usize = 255;
/// Maximum characters of the name of a check or a function, and of a media type.
pub const NAME_CHARACTERS: usize = 128;
/// Maximum characters of a task's type, as `registration::vrf` bounds it.
pub const TASK_TYPE_CHARACTERS: usize = 64;
/// Maximum characters of a task's identifier or description.
pub const TASK_TEXT_CHARACTERS: usize = 1_024;
/// Maximum bytes of a subject.
pub const SUBJECT_BYTES: usize = 1_024;

/// Maximum test cases of a request.
pub const TESTS: usize = 256;
/// Maximum arguments of a program or a function.
pub const ARGUMENTS: usize = 64;
/// Maximum constraints of a request.
pub const CONSTRAINTS: usize = 64;
/// Maximum bytes of a regular expression.
pub const PATTERN_BYTES: usize = 4 << 10;
/// Maximum bytes of a compiled regular expression.
pub const COMPILED_PATTERN_BYTES: usize = 256 << 10;
/// Maximum bytes of a work that is matched with a regular expression.
pub const MATCHED_BYTES: usize = 64 << 10;

/// Maximum properties of a request.
pub const PROPERTIES: usize = 16;
/// Maximum cases of a property.
pub const CASES: u64 = 1_000;
/// Number of cases of a property, if the request has none.
pub const DEFAULT_CASES: u64 = 100;
/// Maximum nesting of a generator.
pub const GENERATOR_DEPTH: usize = 8;
/// Maximum parts of the generators of a property.
pub const GENERATOR_PARTS: usize = 128;
/// Maximum items of a generated array, and characters of a generated string.
pub const GENERATED_LENGTH: u64 = 1_024;
/// Maximum items of generated arrays, if a generator has no `max_items`.
pub const DEFAULT_ITEMS: u64 = 8;
/// Maximum characters of generated strings, if a generator has no `max_length`.
pub const DEFAULT_LENGTH: u64 = 16;
/// Magnitude of generated integers, if a generator has no bounds.
pub const DEFAULT_INTEGER: i64 = 1_000;
/// Maximum size of the arguments of one generated case: its values, and the bytes of its texts and member names. A batch
/// of such cases fits a runner's line.
pub const GENERATED_SIZE: u64 = 40_000;
/// Number of cases that are run together, before the first failure is looked for.
pub const CASES_A_BATCH: usize = 20;
/// Maximum smaller inputs that are tried together.
pub const SHRINKS_A_BATCH: usize = 16;
/// Maximum smaller inputs that are tried for one property.
pub const SHRINK_RUNS: usize = 320;

/// Maximum bytes of an obligation.
pub const OBLIGATION_BYTES: usize = 256 << 10;
/// Maximum commands of an obligation.
pub const OBLIGATION_COMMANDS: usize = 10_000;
/// Maximum nesting of brackets in an obligation.
pub const OBLIGATION_DEPTH: usize = 256;

/// Maximum bytes of an expected, actual or message text of a receipt's detail, with JSON's escapes.
pub const DETAIL_BYTES: usize = 768;

/// Maximum fuel of one run.
pub const FUEL: u64 = 1_000_000_000_000;
/// Fuel of one run of a function, if the request has none.
pub const DEFAULT_FUEL: u64 = 5_000_000_000;
/// Resource units of one run of a solver, if the request has no `fuel`.
pub const DEFAULT_SOLVER_FUEL: u64 = 20_000_000;
/// Maximum resource units of one run of a solver, whose counters have 32 bits.
pub const SOLVER_FUEL: u64 = 4_000_000_000;
/// Minimum memory of one run in bytes: engines do not start with less.
pub const MIN_MEMORY: u64 = 16 << 20;
/// Maximum memory of one run in bytes.
pub const MEMORY: u64 = 2 << 30;
/// Memory of one run in bytes, if the request has none.
pub const DEFAULT_MEMORY: u64 = 256 << 20;
/// Maximum bytes of output of one run.
pub const OUTPUT: u64 = 1 << 20;
/// Bytes of output of one run, if the request has none.
pub const DEFAULT_OUTPUT: u64 = 64 << 10;
/// Maximum bytes of output of all runs of a batch together.
pub const BATCH_OUTPUT: u64 = 24 << 20;
/// Maximum bytes of arguments and standard input of all calls of a batch together. JSON's escapes at most double them in a
/// runner's line. A single call may have more, since the arguments of a request (`REQUEST_BYTES`) and a returned value
/// (`OUTPUT`) become at most 4.4 times as long in canonical form. Only numbers become that long, and they have no escapes.
pub const BATCH_INPUT: usize = 12 << 20;
/// Maximum processes and threads of one run.
pub const PROCESSES: u64 = 64;
/// Processes and threads of one run, if the request has none.
pub const DEFAULT_PROCESSES: u64 = 16;
/// Maximum time of one run in milliseconds.
pub const TIME_MS: u64 = 60_000;
/// Time of one run in milliseconds, if the request has none.
pub const DEFAULT_TIME_MS: u64 = 10_000;
/// Maximum time of all checks of a request in milliseconds.
pub const TOTAL_MS: u64 = 600_000;
/// Time of all checks of a request in milliseconds, if the request has none.
pub const DEFAULT_TOTAL_MS: u64 = 120_000;
/// Time to compare the outcomes of a batch, from its end, even if the time of the request is over.
pub const COMPARISON_TIME: Duration = Duration::from_secs(30);
