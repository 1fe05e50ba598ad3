//! A log in memory, as small as a vector needs.

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::{Answers, Beside, NotPermitted, Permit, Policy, PolicyInForce, Record, Violation};
use scitt::SignedStatement;
use serde_json::Value;

/// Registers as a log would, whose time and contents the vector gives.
pub fn register(vector: &Value) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy(vector), LeafIndex::new(0));
    let mut log: Vec<Permit> = Vec::new();
    for hex in vector["log"].as_array().unwrap() {
        let permit = append(&in_force, hex, None, &log, vector["at"].as_u64().unwrap());
        log.push(permit.unwrap_or_else(|violation| panic!("what the log holds was refused: {violation}")));
    }
    let payload = vector.get("payload").map(|hex| HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap());
    append(&in_force, &vector["statement"], payload.as_deref(), &log, vector["at"].as_u64().unwrap())
}

fn append(
    in_force: &PolicyInForce,
    hex: &Value,
    payload: Option<&[u8]>,
    log: &[Permit],
    at: u64,
) -> Result<Permit, Violation> {
    let bytes = HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap();
    let statement = SignedStatement::parse(bytes).unwrap();
    let beside = Beside { payload, x5chain: None };
    let authenticated = in_force.authenticate(&statement, beside).map_err(|error| error.violation())?;
    let record = Record::read(&authenticated)?;
    let questions = in_force.questions(&authenticated, &record);
    let mut answers = Answers::none();
    for (leaf, held) in log.iter().enumerate() {
        let leaf = LeafIndex::new(1 + leaf as u64);
        if questions.digests.contains(&held.statement()) {
            answers.put_entry(held.statement(), leaf);
        }
        for guard in questions.guards.iter().filter(|guard| held.guards().contains(guard)) {
            answers.put_guard(guard.clone(), leaf);
        }
    }
    let permit =
        in_force.decide(&authenticated, &record, &answers).into_permit().map_err(|why| match why {
            NotPermitted::Refused(refusal) => refusal.violation,
            NotPermitted::Undecided(undecided) => panic!("undecided: {undecided}"),
        })?;
    if let Some(refusal) = permit.refusal_at(at) {
        return Err(refusal.violation);
    }
    for (leaf, earlier) in log.iter().enumerate() {
        if let Some(guard) = permit.guards().iter().find(|guard| earlier.guards().contains(guard)) {
            return Err(permit
                .refusal_for_guard(guard.as_bytes(), LeafIndex::new(1 + leaf as u64))
                .violation);
        }
    }
    Ok(permit)
}

/// The tests' policy, with the vector's options in the rule of each VAP type.
fn policy(vector: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    for rule in document["type"].as_array_mut().unwrap() {
        let rule = rule.as_table_mut().unwrap();
        let content_type = rule["content_type"].as_str().unwrap();
        let table = match content_type {
            "application/vap-verdict+json" => "vap_verdict",
            "application/vap-audit+json" => "vap_audit",
            _ => continue,
        };
        let Some(options) = vector["options"].get(table) else { continue };
        let entry = rule.entry(table).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        for (name, value) in options.as_object().unwrap() {
            let value = toml::Value::try_from(value).unwrap();
            entry.as_table_mut().unwrap().insert(name.clone(), value);
        }
    }
    Policy::from_toml(&document.to_string()).unwrap()
}
