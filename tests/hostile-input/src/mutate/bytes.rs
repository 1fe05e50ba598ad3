//! Mutations that know nothing of syntax.

use fastrand::Rng;

use super::{place, stretch};

/// Changes some bytes; `other` is an input to take some from.
pub(super) fn mutate(rng: &mut Rng, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
    match rng.u8(..8) {
        0 => flip_bit(rng, &mut input),
        1 => set_byte(rng, &mut input),
        2 => input.truncate(rng.usize(..=input.len())),
        3 => drop(input.drain(stretch(rng, &input))),
        4 => insert_noise(rng, &mut input),
        5 => repeat(rng, &mut input),
        6 => input = splice(rng, &input, other),
        _ => overwrite(rng, &mut input, other),
    }
    input
}

fn flip_bit(rng: &mut Rng, input: &mut [u8]) {
    if let Some(byte) = rng.choice(input) {
        *byte ^= 1 << rng.u8(..8);
    }
}

/// Bytes at which a length, a type or a sign changes.
fn set_byte(rng: &mut Rng, input: &mut [u8]) {
    const EDGES: [u8; 12] = [0x00, 0x17, 0x18, 0x1b, 0x1f, 0x40, 0x5f, 0x7f, 0x80, 0x9f, 0xf7, 0xff];
    if let Some(byte) = rng.choice(input) {
        *byte = EDGES[rng.usize(..EDGES.len())];
    }
}

fn insert_noise(rng: &mut Rng, input: &mut Vec<u8>) {
    let at = place(rng, input);
    let noise: Vec<u8> = (0..rng.u8(1..=9)).map(|_| rng.u8(..)).collect();
    input.splice(at..at, noise);
}

fn repeat(rng: &mut Rng, input: &mut Vec<u8>) {
    let piece = input[stretch(rng, input)].to_vec();
    let at = place(rng, input);
    input.splice(at..at, piece.repeat(rng.usize(1..=3)));
}

fn splice(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    [&input[..place(rng, input)], &other[place(rng, other)..]].concat()
}

fn overwrite(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8]) {
    let piece = &other[stretch(rng, other)];
    let start = place(rng, input);
    let end = input.len().min(start + piece.len());
    input.splice(start..end, piece.iter().copied());
}
