//! C2SP transparency-log formats: signed notes and checkpoints.
//!
//! * [`key`]: names of keys, and verifier keys ("vkeys"): signed-note v1.0.0;
//! * [`note`]: text with signature lines: signed-note v1.0.0;
//! * [`checkpoint`]: a tree head as such a text: tlog-checkpoint v1.0.0;
//! * [`cosignature`]: what a witness adds to a checkpoint: tlog-cosignature v1.0.1;
//! * [`witness`]: what a log asks of a witness, and how that decides: tlog-witness v1.0.0;
//! * [`policy`]: whose cosignatures are enough: tlog-policy;
//! * [`proof`]: a leaf's inclusion proof with its checkpoint: tlog-proof.
//!
//! With these, public witnesses and monitors work with our logs unmodified. The key that signs
//! checkpoints is never the one that signs receipts (RFC 9943 gives a key one purpose), and it
//! may live elsewhere: see [`note::NoteSigner`].
//!
//! Only Ed25519 signatures (type 0x01) and cosignatures (0x04) are made and checked; those of other types, post-quantum
//! ones among them, are carried along, as the format demands. Not here: tiles (`merkle::tile`), HTTP, and what a log or a
//! witness must keep before it signs.

pub mod checkpoint;
pub mod cosignature;
pub mod key;
pub mod note;
pub mod policy;
pub mod proof;
pub mod witness;

/// The longest note that is read. Sixteen post-quantum signatures fit in.
pub const MAX_NOTE_BYTES: usize = 256 << 10;
/// The most signature lines that are read; the format asks for 16 at least.
pub const MAX_SIGNATURES: usize = 64;
/// The longest key name or origin, in bytes: cosignatures give it one byte of length.
pub const MAX_NAME_BYTES: usize = 255;

/// Decodes base64 that is written in the one way: the library also takes several encodings in a row,
/// padding and all, and then one note would have two spellings.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let bytes = data_encoding::BASE64.decode(text.as_bytes()).ok()?;
    (data_encoding::BASE64.encode(&bytes) == text).then_some(bytes)
}
