//! C2SP transparency-log formats: signed notes and checkpoints.
//!
//! * [`key`]: key names and verifier keys ("vkeys"): signed-note v1.0.0;
//! * [`note`]: text with signature lines: signed-note v1.0.0;
//! * [`checkpoint`]: a tree head as the text of a note: tlog-checkpoint v1.0.0;
//! * [`cosignature`]: a witness's signature of a checkpoint, with a timestamp: tlog-cosignature v1.0.1;
//! * [`witness`]: the request of a log to a witness, and the witness's decision: tlog-witness v1.0.0;
//! * [`policy`]: the required logs and cosignatures: tlog-policy;
//! * [`proof`]: a leaf's inclusion proof with its checkpoint: tlog-proof.
//!
//! With these formats, public witnesses and monitors work with Tabellion logs unmodified. The key that signs
//! checkpoints differs from the one that signs receipts (RFC 9943 gives a key one purpose), and may be outside of the
//! process: see [`note::NoteSigner`].
//!
//! Only Ed25519 signatures (type 0x01) and cosignatures (0x04) are created and verified; others, including post-quantum
//! ones, are preserved, as the format requires. Not here: tiles (`merkle::tile`), HTTP, and the state that a log or a
//! witness must save before it signs.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use merkle::{TreeSize, empty_root};
//! use tlog::checkpoint::{Checkpoint, Origin};
//! use tlog::note::{LocalKey, NoteSigner};
//!
//! let key = LocalKey::new("log.example".parse()?, ed25519_dalek::SigningKey::from_bytes(&[7; 32]))?;
//! let origin: Origin = "log.example".parse()?;
//! let signed = Checkpoint::new(origin.clone(), TreeSize::new(0), empty_root())?.sign(&key)?;
//!
//! let keys = [key.key().clone()];
//! let checkpoint = Checkpoint::open(signed.to_string().as_bytes(), &origin, &keys)?;
//! assert_eq!(checkpoint.root(), empty_root());
//! # Ok(())
//! # }
//! ```

pub mod checkpoint;
pub mod cosignature;
pub mod key;
pub mod note;
pub mod policy;
pub mod proof;
mod timestamped;
pub mod witness;

/// Maximum size of a parsed note, in bytes. Sixteen post-quantum signatures fit in.
pub const MAX_NOTE_BYTES: usize = 256 << 10;
/// Maximum number of signature lines; the format requires at least 16.
pub const MAX_SIGNATURES: usize = 64;
/// Maximum length of a key name or origin, in bytes: cosignatures encode the length in one byte.
pub const MAX_NAME_BYTES: usize = 255;

/// Decodes canonical base64. The library also accepts several concatenated encodings with padding, which would give a
/// note several spellings.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let bytes = data_encoding::BASE64.decode(text.as_bytes()).ok()?;
    (data_encoding::BASE64.encode(&bytes) == text).then_some(bytes)
}
