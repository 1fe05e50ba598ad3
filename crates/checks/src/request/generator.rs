//! Generators: descriptions of the inputs of a property (tier 2).

use serde_json::Value;

use crate::error::{Form, Members, RequestError, bounded, list, only};
use crate::limits::{DEFAULT_INTEGER, DEFAULT_ITEMS, DEFAULT_LENGTH, GENERATED_LENGTH, GENERATOR_DEPTH};

/// The characters of generated strings, if a generator has no `alphabet`. The first one is the simplest.
const DEFAULT_ALPHABET: &str =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-\"'\\\n\té€😀";
/// Largest magnitude of an integer that all JSON parsers read exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// A description of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// Integers between two bounds.
    Integer {
        /// The smallest.
        minimum: i64,
        /// The largest.
        maximum: i64,
    },
    /// True or false.
    Boolean,
    /// Strings.
    String {
        /// The characters, of which the first is the simplest.
        alphabet: Vec<char>,
        /// The number of characters.
        length: Length,
    },
    /// Arrays.
    Array {
        /// The items.
        items: Box<Generator>,
        /// The number of items.
        length: Length,
    },
    /// Objects with these members.
    Object(Vec<(String, Generator)>),
    /// Values of one of these generators, of which the first is the simplest.
    OneOf(Vec<Generator>),
    /// One of these values, of which the first is the simplest.
    Choice(Vec<Value>),
}

/// Bounds of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub most: u64,
}

impl Generator {
    /// Returns the size that is set aside for a value of this generator: its values, and the bytes of its texts and
    /// member names, where arrays and strings are as short as they can be, and options and choices the largest.
    #[must_use]
    pub fn least_size(&self) -> u64 {
        match self {
            Self::Integer { .. } | Self::Boolean => 1,
            Self::String { alphabet, length } => 1 + length.least * widest(alphabet),
            Self::Array { items, length } => {
                1_u64.saturating_add(items.least_size().saturating_mul(length.least))
            }
            Self::Object(members) => members.iter().fold(1, |sum, (name, member)| {
                member.least_size().saturating_add(name.len() as u64).saturating_add(sum)
            }),
            Self::OneOf(options) => options.iter().map(Self::least_size).max().unwrap_or_default(),
            Self::Choice(values) => values.iter().map(size).max().unwrap_or_default(),
        }
    }

    /// Reads a generator at a JSON pointer; `parts` is how many more the property may have.
    pub(super) fn read(
        value: &Value,
        pointer: String,
        depth: usize,
        parts: &mut usize,
    ) -> Result<Self, RequestError> {
        let generator = Members::of(value, pointer)?;
        *parts = parts.checked_sub(1).ok_or_else(|| generator.broken(Form, "type", "too many generators"))?;
        if depth > GENERATOR_DEPTH {
            let why = format!("generators are nested deeper than {GENERATOR_DEPTH}");
            return Err(generator.broken(Form, "type", why));
        }
        let known = ["integer", "boolean", "string", "array", "object", "one_of", "choice"];
        match generator.word(Form, "type", &known)? {
            "integer" => integer(&generator),
            "boolean" => only(&generator, &["type"]).map(|()| Self::Boolean),
            "string" => string(&generator),
            "array" => array(&generator, depth, parts),
            "object" => object(&generator, depth, parts),
            "one_of" => one_of(&generator, depth, parts),
            _ => choice(&generator),
        }
    }
}

fn integer(generator: &Members<'_>) -> Result<Generator, RequestError> {
    only(generator, &["type", "minimum", "maximum"])?;
    let given_minimum = generator.optional_integer("minimum")?;
    let given_maximum = generator.optional_integer("maximum")?;
    let minimum = given_minimum.unwrap_or(given_maximum.unwrap_or(DEFAULT_INTEGER).min(0) - DEFAULT_INTEGER);
    let maximum = given_maximum.unwrap_or(minimum.max(0) + DEFAULT_INTEGER);
    let exact = -MAX_INTEGER..=MAX_INTEGER;
    match minimum <= maximum && exact.contains(&minimum) && exact.contains(&maximum) {
        true => Ok(Generator::Integer { minimum, maximum }),
        false => {
            Err(generator.broken(Form, "maximum", "minimum and maximum are not a range within ±(2^53-1)"))
        }
    }
}

fn string(generator: &Members<'_>) -> Result<Generator, RequestError> {
    only(generator, &["type", "alphabet", "min_length", "max_length"])?;
    let alphabet: Vec<char> =
        generator.optional_text("alphabet")?.unwrap_or(DEFAULT_ALPHABET).chars().collect();
    match alphabet.len() {
        1..=256 => Ok(Generator::String {
            alphabet,
            length: Length::read(generator, "min_length", "max_length", DEFAULT_LENGTH)?,
        }),
        _ => Err(generator.broken(Form, "alphabet", "an alphabet has 1 to 256 characters")),
    }
}

fn array(generator: &Members<'_>, depth: usize, parts: &mut usize) -> Result<Generator, RequestError> {
    only(generator, &["type", "items", "min_items", "max_items"])?;
    let items = generator.required("items")?;
    let items = Generator::read(items, generator.pointer("items"), depth + 1, parts)?;
    let length = Length::read(generator, "min_items", "max_items", DEFAULT_ITEMS)?;
    Ok(Generator::Array { items: Box::new(items), length })
}

fn object(generator: &Members<'_>, depth: usize, parts: &mut usize) -> Result<Generator, RequestError> {
    only(generator, &["type", "members"])?;
    let members = generator.object("members")?;
    let member = |(name, value): (&str, &Value)| {
        let member = Generator::read(value, members.pointer(name), depth + 1, parts)?;
        Ok((name.to_owned(), member))
    };
    members.iter().map(member).collect::<Result<_, RequestError>>().map(Generator::Object)
}

fn one_of(generator: &Members<'_>, depth: usize, parts: &mut usize) -> Result<Generator, RequestError> {
    only(generator, &["type", "of"])?;
    let items = list(generator, "of", 64)?;
    let pointer = generator.pointer("of");
    let option = |(index, item)| Generator::read(item, format!("{pointer}/{index}"), depth + 1, parts);
    match items.is_empty() {
        true => Err(generator.broken(Form, "of", "at least one generator is needed here")),
        false => items.iter().enumerate().map(option).collect::<Result<_, _>>().map(Generator::OneOf),
    }
}

fn choice(generator: &Members<'_>) -> Result<Generator, RequestError> {
    only(generator, &["type", "values"])?;
    match list(generator, "values", 256)? {
        [] => Err(generator.broken(Form, "values", "at least one value is needed here")),
        values => Ok(Generator::Choice(values.to_vec())),
    }
}

/// Returns the size that is set aside for the values of several generators.
#[must_use]
pub fn least_size(generators: &[Generator]) -> u64 {
    generators.iter().map(Generator::least_size).fold(0, u64::saturating_add)
}

/// Returns the bytes of the longest character of an alphabet.
#[must_use]
pub fn widest(alphabet: &[char]) -> u64 {
    alphabet.iter().map(|character| character.len_utf8() as u64).max().unwrap_or_default()
}

/// Returns the size of a value: its values, and the bytes of its texts and member names.
pub(crate) fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| name.len() as u64 + size(member)).sum::<u64>()
        }
        _ => 1,
    }
}

impl Length {
    fn read(generator: &Members<'_>, least: &str, most: &str, default: u64) -> Result<Self, RequestError> {
        let smallest = bounded(generator, least, 0..=GENERATED_LENGTH, 0)?;
        let largest = bounded(generator, most, smallest..=GENERATED_LENGTH, default.max(smallest))?;
        Ok(Self { least: smallest, most: largest })
    }
}
