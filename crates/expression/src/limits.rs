//! Limits on the cost of a condition. Each is beyond the needs of an honest operator.

use std::num::NonZeroU32;
use std::time::Duration;

/// Maximum bytes of a condition's text.
pub const TEXT_BYTES: usize = 4_096;

/// Maximum statements in a condition, including those in comprehensions and `every`. The engine recurses once for each.
pub const STATEMENTS: usize = 32;

/// Maximum nesting of brackets of any kind. The engine's parsing time doubles with each level.
pub const BRACKET_DEPTH: usize = 8;

/// Maximum opening brackets in a condition, except in strings and comments.
pub const BRACKETS: usize = 64;

/// Maximum multiplications in a condition. Each may double the digits of a number, and the engine does not check the
/// time within a multiplication.
pub const MULTIPLICATIONS: usize = 8;

/// Maximum characters of a number in a condition.
pub const NUMBER_CHARACTERS: usize = 32;

/// Maximum memory of a compiled regular expression, in bytes.
pub const PATTERN_BYTES: usize = 65_536;

/// Maximum bytes of a text that is matched with a regular expression.
pub const MATCHED_BYTES: usize = 65_536;

/// Time limit of an evaluation. It is checked between steps, so the last step may exceed it.
pub const EVALUATION_TIME: Duration = Duration::from_millis(100);

/// Number of steps between two checks of the time.
pub(crate) const STEPS_BETWEEN_LOOKS_AT_TIME: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// Maximum nesting of a document.
pub const INPUT_DEPTH: usize = 100;

/// Maximum values in a document.
pub const INPUT_VALUES: usize = 250_000;

/// Maximum bytes of all strings and member names of a document together.
pub const INPUT_TEXT_BYTES: usize = 8 * 1_048_576;

/// Maximum characters of the engine's error message that are kept: it may quote the document.
pub(crate) const REASON_CHARACTERS: usize = 160;
