//! Mutations of text: its pieces are moved, doubled and dropped, and words of the language put in.

use fastrand::Rng;

use super::place;

/// How many brackets are piled up: around the limits of the parsers, and far beyond.
const DEPTHS: [usize; 8] = [1, 2, 63, 64, 65, 127, 128, 20_000];

pub(super) fn mutate(
    rng: &mut Rng,
    mut input: Vec<u8>,
    other: &[u8],
    separators: &[u8],
    words: &[&str],
) -> Vec<u8> {
    let piece = piece(rng, &input, separators);
    match rng.u8(..7) {
        0 => drop(input.drain(piece)),
        1 => {
            let twice = input[piece.clone()].to_vec();
            input.splice(piece.end..piece.end, twice);
        }
        2 => {
            let theirs = other[self::piece(rng, other, separators)].to_vec();
            input.splice(piece, theirs);
        }
        3 => {
            let word = words[rng.usize(..words.len())].bytes();
            input.splice(piece, word);
        }
        4 => {
            let (open, close) = [("[", "]"), ("{\"\":", "}"), ("[", "")][rng.usize(..3)];
            let depth = DEPTHS[rng.usize(..DEPTHS.len())];
            input.splice(piece.end..piece.end, close.repeat(depth).into_bytes());
            input.splice(piece.start..piece.start, open.repeat(depth).into_bytes());
        }
        _ => {
            let word = words[rng.usize(..words.len())];
            input.splice(piece.end..piece.end, word.repeat(rng.usize(1..=2)).into_bytes());
        }
    }
    input
}

/// From one separator to another that follows.
fn piece(rng: &mut Rng, input: &[u8], separators: &[u8]) -> std::ops::Range<usize> {
    let start = next_separator(input, place(rng, input), separators);
    let mut end = start;
    for _ in 0..rng.u8(..6) {
        end = next_separator(input, (end + 1).min(input.len()), separators);
    }
    start..end
}

fn next_separator(input: &[u8], from: usize, separators: &[u8]) -> usize {
    input[from..].iter().position(|byte| separators.contains(byte)).map_or(input.len(), |found| from + found)
}
