//! The other encoding of an ECDSA signature: if (r, s) verifies, so does (r, n - s).

use crate::alg::{Algorithm, Curve};

/// Group orders of the curves (FIPS 186-5), big-endian.
const N_P256: [u8; 32] = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
const N_P384: [u8; 48] =
    hex("ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973");
const N_P521: [u8; 66] = hex(concat!(
    "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa",
    "51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409",
));

/// Returns the twin of a signature r ‖ s. `None` if s is not a scalar of the group, as no such signature verifies.
pub(super) fn of(algorithm: Algorithm, signature: &[u8]) -> Option<Vec<u8>> {
    let order: &[u8] = match algorithm.curve() {
        Curve::P256 => &N_P256,
        Curve::P384 => &N_P384,
        Curve::P521 => &N_P521,
        Curve::Ed25519 => return None,
    };
    if signature.len() != 2 * order.len() {
        return None;
    }
    let (r, s) = signature.split_at(order.len());
    let in_range = s < order && s.iter().any(|byte| *byte != 0);
    in_range.then(|| [r, &subtract(order, s)].concat())
}

/// Computes `from - what`, for numbers of equal length with `what <= from`.
fn subtract(from: &[u8], what: &[u8]) -> Vec<u8> {
    let mut difference = from.to_vec();
    let mut borrow = false;
    for (digit, subtrahend) in difference.iter_mut().zip(what).rev() {
        let (once, first) = digit.overflowing_sub(*subtrahend);
        let (twice, second) = once.overflowing_sub(u8::from(borrow));
        (*digit, borrow) = (twice, first || second);
    }
    difference
}

const fn hex<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    assert!(text.len() == 2 * N);
    let mut out = [0; N];
    let mut at = 0;
    while at < N {
        out[at] = nibble(text[2 * at]) << 4 | nibble(text[2 * at + 1]);
        at += 1;
    }
    out
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }
}
