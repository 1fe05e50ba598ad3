//! States of streams in the evidence store, as another gateway or an operator stores them.

use admission::tool::Pin;
use bytes::Bytes;
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
    let running = serde_json::to_vec(pin).unwrap().into();
    store_state(store, stream_of(&pin.tool), from, running, gateway::limits::FOR_EVER).await;
}

/// Stores the running state of a new stream, or of one that has this version, and the time at which it is due.
pub async fn store_state(
    store: &dyn EvidenceStore,
    stream: String,
    from: Option<u64>,
    running: Bytes,
    keep_until: u64,
) {
    let change = Change {
        stream,
        from,
        first: 1,
        agreed: None,
        running,
        closed: false,
        keep_until: Some(keep_until),
        records: Vec::new(),
        claims: Vec::new(),
        opened: Vec::new(),
        settled: Vec::new(),
        relies_on: Vec::new(),
    };
    store.commit(&[change]).await.unwrap();
}
