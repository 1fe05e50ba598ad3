//! New inputs out of known ones.
//!
//! A mutation that knows the syntax gets past the first check of a parser; one that does not reaches what
//! nobody thought of. Each input takes a few of both. Everything follows from the seed.

mod bytes;
mod cbor;
mod text;

use fastrand::Rng;

use crate::{Parser, Syntax};

/// Inputs grow no larger than this, so that many can be tried.
pub const MAX_BYTES: usize = 128 << 10;

/// Makes inputs for one parser.
#[derive(Clone, Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    syntax: Syntax,
}

impl Mutator {
    /// Starts from the parser's seeds.
    pub fn new(parser: Parser) -> Self {
        Self { seeds: parser.seeds(), syntax: parser.syntax() }
    }

    /// The inputs that the others are made of.
    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    /// The input with this number, always the same.
    pub fn input(&self, seed: u64) -> Vec<u8> {
        let mut rng = Rng::with_seed(seed);
        let mut input = self.any_seed(&mut rng).to_vec();
        for _ in 0..rng.u8(1..=4) {
            input = self.step(&mut rng, input);
            input.truncate(MAX_BYTES);
        }
        input
    }

    fn step(&self, rng: &mut Rng, input: Vec<u8>) -> Vec<u8> {
        let other = self.any_seed(rng);
        match (self.syntax, rng.u8(..8)) {
            (_, 0..=2) => bytes::mutate(rng, input, other),
            (Syntax::Cbor, _) => cbor::mutate(rng, &input, other),
            (Syntax::Text { separators, words }, _) => text::mutate(rng, input, other, separators, words),
        }
    }

    fn any_seed(&self, rng: &mut Rng) -> &[u8] {
        &self.seeds[rng.usize(..self.seeds.len())]
    }
}

/// A place in `bytes`, or just behind them.
fn place(rng: &mut Rng, bytes: &[u8]) -> usize {
    rng.usize(..=bytes.len())
}

/// A stretch of `bytes`, most often a short one.
fn stretch(rng: &mut Rng, bytes: &[u8]) -> std::ops::Range<usize> {
    let start = place(rng, bytes);
    let longest = bytes.len() - start;
    let length = if rng.bool() { longest.min(rng.usize(..=16)) } else { rng.usize(..=longest) };
    start..start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_input_every_time() {
        for parser in Parser::ALL {
            let (one, other) = (Mutator::new(parser), Mutator::new(parser));
            (0..200)
                .for_each(|seed| assert_eq!(one.input(seed), other.input(seed), "{} {seed}", parser.name()));
        }
    }

    #[test]
    fn inputs_stay_small() {
        let mutator = Mutator::new(Parser::Cbor);
        assert!((0..2000).all(|seed| mutator.input(seed).len() <= MAX_BYTES));
    }
}
