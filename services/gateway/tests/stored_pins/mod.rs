//! The pins of tools in the evidence store, as another gateway or an operator stores them.

use admission::tool::Pin;
use data_encoding::HEXLOWER;
use evidence::{Change, EvidenceStore};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The stream of the pin of a tool of the route `/mcp`.
pub fn stream_of(tool: &str) -> String {
    format!("unbound:.tool:{}", HEXLOWER.encode(&Sha256::digest(json!(["/mcp", tool]).to_string())))
}

/// Stores a pin: that of a tool which nobody has listed, or one that changes this version.
pub async fn store_pin(store: &dyn EvidenceStore, from: Option<u64>, pin: &Pin) {
    let change = Change {
        stream: stream_of(&pin.tool),
        from,
        first: 1,
        agreed: None,
        running: serde_json::to_vec(pin).unwrap().into(),
        closed: false,
        keep_until: Some(gateway::limits::FOR_EVER),
        records: Vec::new(),
        claims: Vec::new(),
        opened: Vec::new(),
        settled: Vec::new(),
        relies_on: Vec::new(),
    };
    store.commit(&[change]).await.unwrap();
}
