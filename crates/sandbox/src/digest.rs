//! Digests of the files that make up an engine.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Returns `sha256:` and the digest in lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}
