//! Prints the canonical form (RFC 8785) of a JSON text, or says why two readers could disagree about it.
//!
//! `cargo run -p tabellion-jose --example canonical -- '{"b": 2, "a": 1}'`

use jose::{jcs, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).unwrap_or_else(|| r#"{ "b": 2, "a": [1, true] }"#.to_owned());
    let value = json::parse_strict(text.as_bytes(), json::Limits::default())?;
    println!("{}", String::from_utf8(jcs::canonical(&value))?);
    Ok(())
}
