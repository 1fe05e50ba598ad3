//! Smaller inputs (tier 2): candidates for a counterexample that a reader understands at once.
//!
//! Candidates come in a fixed order, the boldest first, and each is simpler than the value by a measure that cannot
//! decrease forever. Only the first few positions of a long value are tried; the others get their turn when it is
//! shorter.

use serde_json::Value;

use crate::request::generator::{Generator, Length};

/// Positions of an array or a string that are changed one by one.
const POSITIONS: usize = 16;

/// Returns the simplest value of a generator.
#[must_use]
pub fn simplest(generator: &Generator) -> Value {
    match generator {
        Generator::Integer { minimum, maximum } => 0.clamp(*minimum, *maximum).into(),
        Generator::Boolean => false.into(),
        Generator::String { alphabet, length } => {
            (0..length.least).map(|_| alphabet[0]).collect::<String>().into()
        }
        Generator::Array { items, length } => (0..length.least).map(|_| simplest(items)).collect(),
        Generator::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), simplest(member))).collect()
        }
        Generator::OneOf(options) => simplest(&options[0]),
        Generator::Choice(values) => values[0].clone(),
    }
}

/// Returns lists of arguments that differ in one argument, which is simpler.
#[must_use]
pub fn smaller_arguments(generators: &[Generator], arguments: &[Value]) -> Vec<Vec<Value>> {
    let each = generators.iter().zip(arguments).enumerate();
    each.flat_map(|(index, (generator, argument))| {
        let with = move |simpler| replaced(arguments, index, simpler);
        smaller(generator, argument).into_iter().map(with)
    })
    .collect()
}

/// Returns simpler values that the generator could have made.
fn smaller(generator: &Generator, value: &Value) -> Vec<Value> {
    match (generator, value) {
        (Generator::Integer { .. }, Value::Number(number)) => match number.as_i64() {
            Some(number) => smaller_integers(simplest(generator).as_i64().unwrap_or_default(), number),
            None => Vec::new(),
        },
        (Generator::Boolean, Value::Bool(true)) => vec![false.into()],
        (Generator::String { alphabet, length }, Value::String(text)) => {
            let characters: Vec<char> = text.chars().collect();
            let simpler = |character: &char| match *character == alphabet[0] {
                true => Vec::new(),
                false => vec![alphabet[0]],
            };
            let texts = smaller_lists(&characters, *length, simpler);
            texts.into_iter().map(|text| text.into_iter().collect::<String>().into()).collect()
        }
        (Generator::Array { items, length }, Value::Array(values)) => {
            let lists = smaller_lists(values, *length, |item| smaller(items, item));
            lists.into_iter().map(Value::from).collect()
        }
        (Generator::Object(generators), Value::Object(members)) => smaller_objects(generators, members),
        (Generator::OneOf(options), value) => smaller_options(options, value),
        (Generator::Choice(values), value) => {
            values.iter().take_while(|other| *other != value).cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns integers between the simplest and the value: the simplest, the middle, and the next one.
fn smaller_integers(simplest: i64, value: i64) -> Vec<Value> {
    let distance = value - simplest;
    let mut found: Vec<i64> =
        [0, distance / 2, distance - distance.signum()].into_iter().map(|step| simplest + step).collect();
    found.dedup();
    found.retain(|other| *other != value);
    found.into_iter().map(Value::from).collect()
}

/// Returns lists with fewer items, then lists with one simpler item, then those in which all equal items become simpler
/// together.
fn smaller_lists<T: Clone + PartialEq>(
    items: &[T],
    length: Length,
    simpler: impl Fn(&T) -> Vec<T>,
) -> Vec<Vec<T>> {
    let count = items.len();
    let least = usize::try_from(length.least).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut keep = least;
    while keep < count {
        found.push(items[..keep].to_vec());
        found.push(items[count - keep..].to_vec());
        keep += (count - keep).div_ceil(2);
    }
    let single = if count > least { count.min(POSITIONS) } else { 0 };
    found.extend((0..single).map(|index| [&items[..index], &items[index + 1..]].concat()));
    for index in 0..count.min(POSITIONS) {
        found.extend(simpler(&items[index]).into_iter().map(|item| replaced(items, index, item)));
    }
    let repeats = |index: &usize| items[index + 1..].contains(&items[*index]);
    for index in (0..count.min(POSITIONS)).filter(repeats) {
        found
            .extend(simpler(&items[index]).into_iter().map(|item| replaced_all(items, &items[index], &item)));
    }
    found
}

fn smaller_objects(
    generators: &[(String, Generator)],
    members: &serde_json::Map<String, Value>,
) -> Vec<Value> {
    let each = generators.iter().filter_map(|(name, generator)| Some((name, generator, members.get(name)?)));
    each.flat_map(|(name, generator, member)| {
        smaller(generator, member).into_iter().map(move |simpler| {
            let mut members = members.clone();
            members.insert(name.clone(), simpler);
            members.into()
        })
    })
    .collect()
}

/// Returns the simplest value of each option before the one that made the value, then simpler values of that.
fn smaller_options(options: &[Generator], value: &Value) -> Vec<Value> {
    let Some(index) = options.iter().position(|option| could_make(option, value)) else { return Vec::new() };
    let before = options[..index].iter().map(simplest);
    before.chain(smaller(&options[index], value)).collect()
}

/// Returns whether a generator could have made a value.
fn could_make(generator: &Generator, value: &Value) -> bool {
    let fits = |length: &Length, count: usize| (length.least..=length.most).contains(&(count as u64));
    match (generator, value) {
        (Generator::Integer { minimum, maximum }, Value::Number(number)) => {
            number.as_i64().is_some_and(|number| (*minimum..=*maximum).contains(&number))
        }
        (Generator::Boolean, Value::Bool(_)) => true,
        (Generator::String { alphabet, length }, Value::String(text)) => {
            fits(length, text.chars().count()) && text.chars().all(|character| alphabet.contains(&character))
        }
        (Generator::Array { items, length }, Value::Array(values)) => {
            fits(length, values.len()) && values.iter().all(|value| could_make(items, value))
        }
        (Generator::Object(generators), Value::Object(members)) => {
            generators.len() == members.len()
                && generators.iter().all(|(name, generator)| {
                    members.get(name).is_some_and(|member| could_make(generator, member))
                })
        }
        (Generator::OneOf(options), value) => options.iter().any(|option| could_make(option, value)),
        (Generator::Choice(values), value) => values.contains(value),
        _ => false,
    }
}

fn replaced_all<T: Clone + PartialEq>(items: &[T], item: &T, by: &T) -> Vec<T> {
    items.iter().map(|other| if other == item { by } else { other }).cloned().collect()
}

fn replaced<T: Clone>(items: &[T], index: usize, item: T) -> Vec<T> {
    let mut items = items.to_vec();
    items[index] = item;
    items
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The smallest value for which the property still fails, by the first failing candidate each time.
    fn shrunk(generator: &Generator, mut value: Value, fails: impl Fn(&Value) -> bool) -> Value {
        while let Some(simpler) = smaller(generator, &value).into_iter().find(&fails) {
            assert!(could_make(generator, &simpler), "{simpler}");
            value = simpler;
        }
        value
    }

    #[test]
    fn an_integer_shrinks_to_the_first_that_fails() {
        let generator = Generator::Integer { minimum: -1_000, maximum: 1_000 };
        let fails = |value: &Value| value.as_i64().unwrap() >= 202;
        assert_eq!(shrunk(&generator, json!(977), fails), json!(202));
        assert_eq!(shrunk(&generator, json!(-977), |_| true), json!(0));
    }

    #[test]
    fn a_list_shrinks_to_the_items_that_matter() {
        let items = Generator::Integer { minimum: 0, maximum: 100 };
        let generator = Generator::Array { items: Box::new(items), length: Length { least: 0, most: 30 } };
        let value: Value = (0..30).map(|item| item * 3 % 50).collect();
        let fails = |value: &Value| value.as_array().unwrap().iter().any(|item| item.as_i64().unwrap() > 7);
        assert_eq!(shrunk(&generator, value, fails), json!([8]));
        let repeats = |value: &Value| value[0].is_number() && value[0] == value[1];
        assert_eq!(shrunk(&generator, json!([7, 7, 3]), repeats), json!([0, 0]));
    }

    #[test]
    fn options_and_members_shrink_to_the_first_ones() {
        let choice = Generator::Choice(vec![json!("a"), json!("b"), json!("c")]);
        let generator =
            Generator::Object(vec![("x".into(), Generator::OneOf(vec![Generator::Boolean, choice]))]);
        assert_eq!(shrunk(&generator, json!({"x": "c"}), |_| true), json!({"x": false}));
        let is_text = |value: &Value| value["x"].is_string();
        assert_eq!(shrunk(&generator, json!({"x": "c"}), is_text), json!({"x": "a"}));
    }
}
