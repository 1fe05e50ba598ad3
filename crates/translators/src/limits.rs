//! Limits of this crate.

/// Maximum size of a source in bytes, all files together.
pub const SOURCE_BYTES: usize = 256 << 20;
/// Maximum nesting depth of a native entry. A record may nest 64 deep, and adds up to four levels around an entry.
pub const NATIVE_DEPTH: usize = 56;
/// Number of lines from which the format of a file is detected.
pub const DETECTION_LINES: usize = 64;
/// Maximum number of lines that are tried as the beginning of a JSON text of several lines. A try may read the rest of the file.
pub const INDENTED_TRIES: usize = 16;
/// Maximum size in bytes of a file's content that is remembered for its attribution.
pub const ATTRIBUTED_TEXT: usize = 4 << 20;
/// Maximum number of bytes and lines that the changes of a session may search and move for its attribution.
pub const ATTRIBUTION_WORK: usize = 1 << 30;
/// Maximum number of JSON pointers that a record lists for one redaction rule. The count is always complete.
pub const LISTED_POINTERS: usize = 100;
/// Minimum length in characters of a text that may count as a random secret.
pub const SECRET_LENGTH: usize = 32;
/// Minimum entropy in bits per character of a text that counts as a random secret.
pub const SECRET_ENTROPY: f64 = 4.0;
