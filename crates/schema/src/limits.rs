//! How much of a schema is read, and how much work a check may be.

/// Bytes of a schema.
pub const SCHEMA_BYTES: usize = 64 << 10;
/// How many arrays and objects of a schema may be open at once.
pub const SCHEMA_DEPTH: usize = 64;
/// Bytes of one regular expression, as it is written.
pub const PATTERN_BYTES: usize = 4 << 10;
/// Bytes of one compiled regular expression.
pub const COMPILED_PATTERN_BYTES: usize = 256 << 10;
/// Bytes of the states that matching one regular expression may keep.
pub const PATTERN_CACHE_BYTES: usize = 1 << 20;
/// Regular expressions of one schema.
pub const PATTERNS: usize = 256;
/// How many arrays and objects of arguments may be open at once.
pub const ARGUMENTS_DEPTH: usize = 64;
/// Steps of one check: a subschema applied to a value is one, and more by the length of both.
pub const CHECK_STEPS: u64 = 200_000;
/// Bytes of text that one check may match against regular expressions.
pub const MATCHED_BYTES: u64 = 1 << 20;
/// How deep subschemas may be applied in each other: references included, and those that stay at one value.
pub const CHECK_DEPTH: usize = 128;
/// Bytes of the place that a misfit names.
pub const PLACE_BYTES: usize = 512;
