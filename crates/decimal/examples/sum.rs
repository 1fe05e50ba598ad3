//! Adds amounts exactly, as the meters of a budget do: 0.1 + 0.1 + 0.1 is 0.3.
//!
//! `cargo run -p decimal --example sum -- 0.1 0.1 0.1`

use decimal::Decimal;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let amounts = if given.is_empty() { vec!["0.1".to_owned(); 3] } else { given };
    let mut sum = Decimal::default();
    for amount in &amounts {
        sum = sum.checked_add(Decimal::read(amount)?).ok_or("the sum has too many digits")?;
    }
    println!("{} = {sum}", amounts.join(" + "));
    Ok(())
}
