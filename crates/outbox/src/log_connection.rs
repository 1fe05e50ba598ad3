//! The log at which statements are registered.

use bytes::Bytes;
use client::Client;
use merkle::EntryDigest;
use scitt::Receipt;
use verifier::TrustStore;

/// The log at which statements are registered.
#[derive(Clone, Debug)]
pub struct LogConnection {
    /// The log's public URL.
    pub url: String,
    /// The client of the log. Its time limit bounds each exchange, `Retry-After` included.
    pub client: Client,
    /// The trust anchors for receipts. Without them, receipts are stored unverified.
    pub trust: Option<TrustStore>,
}

impl LogConnection {
    /// Returns the leaf index that the receipt of an entry states, if the receipt can be parsed and verified at `now`, in
    /// Unix seconds.
    pub(crate) fn leaf_index(
        &self,
        id: EntryDigest,
        receipt: &Bytes,
        now: u64,
    ) -> Result<Option<u64>, String> {
        let read = Receipt::parse(receipt.clone())
            .map_err(|error| format!("the answer is not a receipt: {error}"))?;
        if let Some(trust) = &self.trust {
            let verdict = verifier::verify_receipt_of(id, receipt, trust, now);
            if !verdict.is_verified() {
                return Err(format!("the receipt does not verify: {}", verdict.why()));
            }
        }
        Ok(read.inclusion_proofs().first().map(|proof| proof.leaf_index.get()))
    }
}
