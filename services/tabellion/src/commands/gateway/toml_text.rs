//! Strings in TOML that is written line by line, with comments, for people to edit.

/// Returns the text as a TOML string, with its quotes.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
