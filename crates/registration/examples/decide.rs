//! Decides whether a registration policy admits a statement, without a log: signature, record, permit.
//!
//! `cargo run -p registration --example decide`

use merkle::LeafIndex;
use registration::{Answers, Policy, PolicyInForce, Record, SideData};
use scitt::{Algorithm, Signer, SigningKey, StatementBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let operator = SigningKey::generate(Algorithm::EdDsa)?.public_key().did_key();
    let policy = Policy::from_toml(&format!(
        r#"
iss = "https://log.example"
origin = "log.example"
revision = 0

[[operator]]
key = "{operator}"

[did]
key = "open"

[[type]]
content_type = "text/plain"
"#
    ))?;
    let in_force = PolicyInForce::new(policy, LeafIndex::new(0));

    let key = SigningKey::generate(Algorithm::Es256)?;
    let issuer = key.public_key().did_key();
    for content_type in ["text/plain", "text/html"] {
        let builder = StatementBuilder::new("the build passed").content_type(content_type);
        let statement = builder.kid(issuer.as_str()).iss(&issuer).sub("build 17").sign(&key)?;
        let authenticated = in_force.authenticate(&statement, SideData::default())?;
        let record = Record::read(&authenticated)?;
        // A log would look up what the decision asks: `in_force.questions(&authenticated, &record)`.
        match in_force.decide(&authenticated, &record, &Answers::none()).into_permit() {
            Ok(permit) => println!("{content_type}: admitted by the rule {}", permit.rule()),
            Err(refused) => println!("{content_type}: {refused}"),
        }
    }
    Ok(())
}
