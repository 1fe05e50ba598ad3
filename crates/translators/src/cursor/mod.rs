//! Readers for Cursor: transcripts of its agent as lines of JSON (`lines`) and as plain text (`text`), and the chats of
//! its composer, which are rows of an SQLite database (`composer`).

pub(crate) mod composer;
pub(crate) mod lines;
pub(crate) mod text;

/// The name in `cli-name`.
const CLI_NAME: &str = "cursor";
