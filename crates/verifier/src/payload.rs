//! Checks that a given payload is the one that was signed.

use data_encoding::HEXLOWER;
use scitt::SignedStatement;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::verdict::{Check, CheckName, Code};

const SHA_256: i64 = -16;
const SHA_384: i64 = -43;
const SHA_512: i64 = -44;

/// Detached payload that a statement's signature covers.
pub(crate) enum Detached {
    /// The payload is attached.
    Attached,
    /// The given payload, or for a hash envelope its digest.
    Given(Vec<u8>),
    /// The payload is detached and was not given.
    Missing,
    /// The hash envelope uses an unsupported algorithm, with this COSE identifier.
    UnsupportedHash(i64),
}

pub(crate) fn detached(statement: &SignedStatement, given: Option<&[u8]>) -> Detached {
    match (statement.is_detached(), given, statement.header().hash_envelope()) {
        (false, ..) => Detached::Attached,
        (true, None, _) => Detached::Missing,
        (true, Some(given), None) => Detached::Given(given.to_vec()),
        (true, Some(given), Some(envelope)) => match digest(envelope.algorithm, given) {
            Some(digest) => Detached::Given(digest),
            None => Detached::UnsupportedHash(envelope.algorithm),
        },
    }
}

/// Returns the payload check. `None` if the payload is attached and none was given for comparison: the issuer's
/// signature then covers it.
pub(crate) fn check(
    statement: &SignedStatement,
    given: Option<&[u8]>,
    signature_held: Option<bool>,
) -> Option<Check> {
    let envelope = statement.header().hash_envelope();
    match (statement.payload(), given) {
        (None, None) => Some(not_done(Code::PayloadMissing, "the payload is detached and was not given")),
        (None, Some(_)) => Some(match signature_held {
            Some(true) => Check::ok(CheckName::Payload, "the signature covers the payload given"),
            Some(false) => not_done(Code::NotReached, "cannot be distinguished from the issuer's signature"),
            None => not_done(Code::NotReached, "the issuer's signature was not checked"),
        }),
        (Some(_), None) => envelope.map(|_| {
            not_done(
                Code::PayloadNotGiven,
                "only its digest is in the statement, and nothing was given to compare",
            )
        }),
        (Some(signed), Some(given)) => Some(match envelope {
            None => compare("sha-256", &Sha256::digest(signed), &Sha256::digest(given)),
            Some(envelope) => match digest(envelope.algorithm, given) {
                Some(found) => compare(hash_name(envelope.algorithm), signed, &found),
                None => {
                    let detail = format!("hash algorithm {} is not computed here", envelope.algorithm);
                    not_done(Code::UnsupportedHash, &detail)
                }
            },
        }),
    }
}

fn compare(hash: &str, expected: &[u8], found: &[u8]) -> Check {
    let (hex, found_hex) = (HEXLOWER.encode(expected), HEXLOWER.encode(found));
    if expected == found {
        return Check::ok(CheckName::Payload, format!("{hash} {hex}"));
    }
    let detail = format!("{hash} {hex} expected, {found_hex} found");
    Check::failed(CheckName::Payload, Code::PayloadDigestMismatch, detail)
}

fn not_done(code: Code, detail: &str) -> Check {
    Check::not_done(CheckName::Payload, code, detail)
}

fn digest(algorithm: i64, preimage: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        SHA_256 => Some(Sha256::digest(preimage).to_vec()),
        SHA_384 => Some(Sha384::digest(preimage).to_vec()),
        SHA_512 => Some(Sha512::digest(preimage).to_vec()),
        _ => None,
    }
}

fn hash_name(algorithm: i64) -> &'static str {
    match algorithm {
        SHA_384 => "sha-384",
        SHA_512 => "sha-512",
        _ => "sha-256",
    }
}
