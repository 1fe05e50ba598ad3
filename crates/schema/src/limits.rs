//! Limits on schemas and on the work of a check.

/// Maximum bytes of a schema.
pub const SCHEMA_BYTES: usize = 64 << 10;
/// Maximum nesting of arrays and objects in a schema.
pub const SCHEMA_DEPTH: usize = 64;
/// Maximum bytes of a regular expression's text.
pub const PATTERN_BYTES: usize = 4 << 10;
/// Maximum bytes of a compiled regular expression.
pub const COMPILED_PATTERN_BYTES: usize = 256 << 10;
/// Maximum bytes of the state cache for matching a regular expression.
pub const PATTERN_CACHE_BYTES: usize = 1 << 20;
/// Maximum regular expressions in a schema.
pub const PATTERNS: usize = 256;
/// Maximum nesting of arrays and objects in arguments.
pub const ARGUMENTS_DEPTH: usize = 64;
/// Maximum steps of a check. One step is a subschema applied to a value; long lists and strings add more.
pub const CHECK_STEPS: u64 = 200_000;
/// Maximum bytes of text that a check matches with regular expressions.
pub const MATCHED_BYTES: u64 = 1 << 20;
/// Maximum bytes of arguments that a quick check takes.
pub const QUICK_BYTES: usize = 4 << 10;
/// Maximum steps of a quick check.
pub const QUICK_STEPS: u64 = 1_000;
/// Maximum nesting of applied subschemas, including references and subschemas for the same value.
pub const CHECK_DEPTH: usize = 128;
/// Maximum bytes of the pointer in a [`Misfit`](crate::Misfit).
pub const PLACE_BYTES: usize = 512;
