//! How much a condition may cost. Each limit is what an operator's honest condition never meets.

use std::num::NonZeroU32;
use std::time::Duration;

/// The longest text of a condition, in bytes.
pub const TEXT_BYTES: usize = 4_096;

/// The most statements in a condition, those inside comprehensions and `every` among them. The engine
/// takes one level of the stack for each.
pub const STATEMENTS: usize = 32;

/// How deep brackets of any kind may be nested. Reading them takes the engine twice as long for each.
pub const BRACKET_DEPTH: usize = 8;

/// The most opening brackets in a condition, those in texts and comments apart.
pub const BRACKETS: usize = 64;

/// The most multiplications in a condition: each may double the digits of a number, and no step of
/// the engine looks at the time.
pub const MULTIPLICATIONS: usize = 8;

/// The longest number written in a condition, in characters.
pub const NUMBER_CHARACTERS: usize = 32;

/// The largest regular expression, in bytes of memory when it is read.
pub const PATTERN_BYTES: usize = 65_536;

/// The longest text that a regular expression is matched with, in bytes.
pub const MATCHED_BYTES: usize = 65_536;

/// How long a condition may take. It is looked at between steps, so one step may add its own time.
pub const EVALUATION_TIME: Duration = Duration::from_millis(100);

/// How many steps pass between two looks at the time.
pub(crate) const STEPS_BETWEEN_LOOKS_AT_TIME: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// How deep a document may be nested.
pub const INPUT_DEPTH: usize = 100;

/// The most values a document may hold.
pub const INPUT_VALUES: usize = 250_000;

/// The most bytes that the texts and names of a document may hold together.
pub const INPUT_TEXT_BYTES: usize = 8 * 1_048_576;

/// How much of the engine's reason is kept: it may quote the document.
pub(crate) const REASON_CHARACTERS: usize = 160;
