//! Evaluates a condition over a JSON document, as a registration policy and the gateway's rules do.
//!
//! `cargo run -p expression --example condition -- 'input.tool == "delete"; input.count > 10' '{"tool":"delete","count":12}'`

use expression::Expression;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let condition =
        arguments.next().unwrap_or_else(|| r#"input.tool == "delete"; input.count > 10"#.to_owned());
    let document = arguments.next().unwrap_or_else(|| r#"{"tool": "delete", "count": 12}"#.to_owned());
    let condition = Expression::compile(&condition)?;
    match condition.evaluate(&serde_json::from_str(&document)?)? {
        true => println!("the condition holds"),
        false => println!("the condition does not hold"),
    }
    Ok(())
}
