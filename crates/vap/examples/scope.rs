//! Reads a Scope Commitment, and says which tools its scope permits.
//!
//! `cargo run -p vap --example scope -- COMMITMENT.json read_file write_file`

use vap::message::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = match arguments.next() {
        Some(file) => std::fs::read_to_string(file)?,
        None => COMMITMENT.to_owned(),
    };
    let message = match Message::read(&text) {
        Ok(message) => message,
        Err(flaw) => return Err(format!("{} at {:?}: {}", flaw.reason, flaw.pointer, flaw.what).into()),
    };
    println!("{:?} of session {}", message.kind(), message.session_id());
    let Message::ScopeCommitment(commitment) = message else { return Ok(()) };
    let tools: Vec<String> = arguments.collect();
    let tools = if tools.is_empty() { vec!["read_file".to_owned(), "delete_file".to_owned()] } else { tools };
    for tool in tools {
        println!("{tool}: {}", if commitment.scope.allows(&tool) { "permitted" } else { "not permitted" });
    }
    Ok(())
}

const COMMITMENT: &str = r#"{
  "vap": "0.1", "type": "scope_commitment", "session_id": "s-1",
  "goal": "Answer the ticket",
  "scope": { "tools_allow": ["read_*"], "tools_deny": ["read_secret"] },
  "budget": { "max_calls": 20 },
  "principal": { "agent_id": "agent-7" }
}"#;
