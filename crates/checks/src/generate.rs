//! Generation of inputs from a seed (tier 2).
//!
//! The seed is made of the hashes of the work, the specification and the properties, so that the same request has the
//! same inputs everywhere, and its author cannot choose among several sets of them without a change of the request.
//! Lengths grow from case to case: simple inputs come first. The size of a case is bounded: what its generators need at
//! least is set aside, and arrays and strings share the rest.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::limits::GENERATED_SIZE;
use crate::request::Hashes;
use crate::request::generator::{Generator, Length, least_size, widest};

/// Largest magnitude of integers that are generated more often than others.
const SMALL: i64 = 16;

/// The seed of all inputs of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Returns the SHA-256 of the hashes of the work, the specification and the properties as texts, each with a newline
    /// at its end; the text of an absent specification is empty.
    #[must_use]
    pub fn of(hashes: &Hashes) -> Self {
        let specification = hashes.specification.as_deref().unwrap_or_default();
        let text = format!("{}\n{specification}\n{}\n", hashes.output, hashes.tests);
        Self(Sha256::digest(text).into())
    }

    /// Returns the seed in lower-case hex.
    #[must_use]
    pub fn hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }
}

/// A source of inputs for one property.
#[derive(Debug)]
pub struct Inputs<'a> {
    random: ChaCha20Rng,
    generators: &'a [Generator],
    cases: u64,
    next: u64,
    /// How much larger than the smallest a case may be.
    spare: u64,
}

impl<'a> Inputs<'a> {
    /// Creates the source for the property with this index: ChaCha20 with the seed as key and the index as stream.
    #[must_use]
    pub fn new(seed: Seed, index: u64, generators: &'a [Generator], cases: u64) -> Self {
        let mut random = ChaCha20Rng::from_seed(seed.0);
        random.set_stream(index);
        let spare = GENERATED_SIZE.saturating_sub(least_size(generators));
        Self { random, generators, cases, next: 0, spare }
    }
}

impl Iterator for Inputs<'_> {
    type Item = Vec<Value>;

    fn next(&mut self) -> Option<Vec<Value>> {
        if self.next == self.cases {
            return None;
        }
        self.next += 1;
        let mut draw =
            Draw { random: &mut self.random, grown: self.next, cases: self.cases, spare: self.spare };
        Some(self.generators.iter().map(|generator| draw.value(generator)).collect())
    }
}

/// The state of one case.
struct Draw<'a> {
    random: &'a mut ChaCha20Rng,
    /// The number of the case, from 1 to `cases`.
    grown: u64,
    cases: u64,
    /// The size that is left for arrays and strings that are longer than they must be.
    spare: u64,
}

impl Draw<'_> {
    fn value(&mut self, generator: &Generator) -> Value {
        match generator {
            Generator::Integer { minimum, maximum } => self.integer(*minimum, *maximum).into(),
            Generator::Boolean => (self.below(2) == 1).into(),
            Generator::String { alphabet, length } => {
                let count = self.length(*length, widest(alphabet));
                (0..count).map(|_| alphabet[self.index(alphabet.len())]).collect::<String>().into()
            }
            Generator::Array { items, length } => {
                let count = self.length(*length, items.least_size());
                (0..count).map(|_| self.value(items)).collect()
            }
            Generator::Object(members) => {
                members.iter().map(|(name, member)| (name.clone(), self.value(member))).collect()
            }
            Generator::OneOf(options) => {
                let option = self.index(options.len());
                self.value(&options[option])
            }
            Generator::Choice(values) => values[self.index(values.len())].clone(),
        }
    }

    /// Draws a bound, zero or one; a small integer; or any integer of the range.
    fn integer(&mut self, minimum: i64, maximum: i64) -> i64 {
        let within = |value: i64| value.clamp(minimum, maximum);
        match self.below(8) {
            0 => [minimum, maximum, within(0), within(1), within(-1)][self.index(5)],
            1..=3 => {
                let (least, most) = (within(-SMALL), within(SMALL));
                self.between(least, most)
            }
            _ => self.between(minimum, maximum),
        }
    }

    fn between(&mut self, minimum: i64, maximum: i64) -> i64 {
        let offset = self.below(maximum.abs_diff(minimum) + 1);
        minimum.saturating_add_unsigned(offset)
    }

    /// Draws a length that is not beyond what the case has grown to, nor beyond the spare size, of which it takes what
    /// its items need at least.
    fn length(&mut self, length: Length, item_size: u64) -> u64 {
        let range = length.most - length.least;
        let grown = (range * self.grown).div_ceil(self.cases);
        let affordable = self.spare / item_size.max(1);
        let more = self.below(grown.min(affordable) + 1);
        self.spare -= more * item_size;
        length.least + more
    }

    fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// Draws an integer below `bound`, each with the same probability.
    fn below(&mut self, bound: u64) -> u64 {
        let rest = (u64::MAX % bound + 1) % bound; // The largest draws, which would make small results more likely.
        loop {
            let drawn = self.random.next_u64();
            if drawn <= u64::MAX - rest {
                return drawn % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::generator::size;

    fn seed() -> Seed {
        let hashes = Hashes { output: "a".into(), specification: None, tests: "b".into() };
        Seed::of(&hashes)
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_each_property_its_own() {
        let generators = [Generator::Integer { minimum: -1_000_000, maximum: 1_000_000 }];
        let inputs = |index| Inputs::new(seed(), index, &generators, 50).collect::<Vec<_>>();
        assert_eq!(inputs(0), inputs(0));
        assert_ne!(inputs(0), inputs(1));
    }

    #[test]
    fn the_inputs_of_this_seed_never_change() {
        assert_eq!(seed().hex(), "770423513bd0765c18e500000baec91976bcd8267a245437b32572665c6ac370");
        let generators = [Generator::Integer { minimum: -1_000, maximum: 1_000 }];
        let inputs: Vec<Value> = Inputs::new(seed(), 0, &generators, 5).flatten().collect();
        assert_eq!(Value::from(inputs).to_string(), "[-15,1000,-1000,1000,-12]");
    }

    #[test]
    fn no_case_is_larger_than_its_bound() {
        let long =
            |items| Generator::Array { items: Box::new(items), length: Length { least: 0, most: 1_024 } };
        let text =
            Generator::String { alphabet: vec!['a', '😀'], length: Length { least: 0, most: 1_024 } };
        let named = |name: &str, member| Generator::Object(vec![(name.repeat(50), member)]);
        let choice =
            Generator::Choice(vec![Value::Null, serde_json::json!({ "n".repeat(900): "v".repeat(900) })]);
        let generators = [
            long(long(long(Generator::OneOf(vec![Generator::Boolean, text.clone()])))),
            long(choice),
            long(named("name", long(named("other", text)))),
        ];
        for generator in generators {
            let largest = Inputs::new(seed(), 0, std::slice::from_ref(&generator), 100)
                .map(|arguments| arguments.iter().map(size).sum::<u64>())
                .max();
            assert!(largest > Some(GENERATED_SIZE / 2), "{largest:?}");
            assert!(largest <= Some(GENERATED_SIZE), "{largest:?}");
        }
    }
}
