//! Signatures with a timestamp, as in cosignatures: the blob in the signature line, and the signed message
//! (tlog-cosignature v1.0.1).

/// Maximum timestamp; larger values are negative numbers to some implementations.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// Splits a blob into timestamp and signature.
pub(crate) fn split(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (time, signature) = bytes.split_first_chunk::<8>()?;
    let time = u64::from_be_bytes(*time);
    (signature.len() == 64 && time <= MAX_TIME).then_some((time, signature))
}

/// The signed message of a cosignature.
pub(crate) fn message(text: &str, time: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}
