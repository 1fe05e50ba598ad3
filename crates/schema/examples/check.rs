//! Checks the arguments of a tool call against the tool's JSON Schema, neither of which is trusted.
//!
//! `cargo run -p schema --example check -- '{"type":"object","required":["path"]}' '{"file":"notes.txt"}'`

use schema::Schema;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let schema = arguments.next().unwrap_or_else(|| r#"{"type": "object", "required": ["path"]}"#.to_owned());
    let value = arguments.next().unwrap_or_else(|| r#"{"file": "notes.txt"}"#.to_owned());
    match Schema::compile(&schema)?.check(&value) {
        Ok(()) => println!("the arguments match"),
        Err(mismatch) => println!("the arguments do not match: {mismatch}"),
    }
    Ok(())
}
