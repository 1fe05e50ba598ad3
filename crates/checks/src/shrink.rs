//! Smaller inputs (tier 2): candidates for a counterexample that a reader understands at once.
//!
//! Candidates come in a fixed order, the boldest first, and each is simpler than the value by a measure that cannot
//! decrease forever. Only the first few positions of a long value are tried; the others get their turn when it is
//! shorter.

use std::rc::Rc;

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

/// Returns lists of arguments that differ in one argument, which is simpler. Each is made when it is asked for.
pub fn smaller_arguments<'a>(
    generators: &'a [Generator],
    arguments: &'a [Value],
) -> impl Iterator<Item = Vec<Value>> + 'a {
    let each = generators.iter().zip(arguments).enumerate();
    each.flat_map(move |(index, (generator, argument))| {
        smaller(generator, argument).map(move |simpler| replaced(arguments, index, simpler))
    })
}

/// Simpler values, each made when it is asked for: there may be many, each about as large as the value itself.
type Simpler<'a, T> = Box<dyn Iterator<Item = T> + 'a>;

/// Returns simpler values that the generator could have made.
fn smaller<'a>(generator: &'a Generator, value: &'a Value) -> Simpler<'a, Value> {
    match (generator, value) {
        (Generator::Integer { .. }, Value::Number(number)) => match number.as_i64() {
            Some(number) => smaller_integers(simplest(generator).as_i64().unwrap_or_default(), number),
            None => none(),
        },
        (Generator::Boolean, Value::Bool(true)) => Box::new(std::iter::once(false.into())),
        (Generator::String { alphabet, length }, Value::String(text)) => {
            smaller_texts(alphabet[0], *length, text)
        }
        (Generator::Array { items, length }, Value::Array(values)) => {
            let simpler = |index: usize| smaller(items, &values[index]);
            Box::new(smaller_lists(values[..].into(), *length, simpler).map(Value::from))
        }
        (Generator::Object(generators), Value::Object(members)) => smaller_objects(generators, members),
        (Generator::OneOf(options), value) => smaller_options(options, value),
        (Generator::Choice(values), value) => {
            Box::new(values.iter().take_while(move |other| *other != value).cloned())
        }
        _ => none(),
    }
}

fn none<'a, T: 'a>() -> Simpler<'a, T> {
    Box::new(std::iter::empty())
}

/// Returns integers between the simplest and the value: the simplest, the middle, and the next one.
fn smaller_integers<'a>(simplest: i64, value: i64) -> Simpler<'a, Value> {
    let distance = value - simplest;
    let mut found: Vec<i64> =
        [0, distance / 2, distance - distance.signum()].into_iter().map(|step| simplest + step).collect();
    found.dedup();
    found.retain(|other| *other != value);
    Box::new(found.into_iter().map(Value::from))
}

/// Returns texts that are shorter, or have the simplest character in place of another.
fn smaller_texts<'a>(simplest: char, length: Length, text: &str) -> Simpler<'a, Value> {
    let characters: Rc<[char]> = text.chars().collect();
    let others = Rc::clone(&characters);
    let simpler = move |index: usize| -> Simpler<'a, char> {
        Box::new((others[index] != simplest).then_some(simplest).into_iter())
    };
    let texts = smaller_lists(characters, length, simpler);
    Box::new(texts.map(|text| text.into_iter().collect::<String>().into()))
}

/// Returns lists with fewer items, then lists with one simpler item, then those in which all equal items become simpler
/// together; `simpler` returns simpler items for the one at an index.
fn smaller_lists<'a, T: Clone + PartialEq + 'a>(
    items: Rc<[T]>,
    length: Length,
    simpler: impl Fn(usize) -> Simpler<'a, T> + Clone + 'a,
) -> Simpler<'a, Vec<T>> {
    let positions = 0..items.len().min(POSITIONS);
    let (one, all, rest) = (Rc::clone(&items), Rc::clone(&items), Rc::clone(&items));
    let simpler_together = simpler.clone();
    let with_one_simpler = positions.clone().flat_map(move |index| {
        let items = Rc::clone(&one);
        simpler(index).map(move |item| replaced(&items, index, item))
    });
    let repeats = move |index: &usize| rest[index + 1..].contains(&rest[*index]);
    let with_all_simpler = positions.filter(repeats).flat_map(move |index| {
        let items = Rc::clone(&all);
        simpler_together(index).map(move |item| replaced_all(&items, &items[index], &item))
    });
    Box::new(shorter_lists(items, length).chain(with_one_simpler).chain(with_all_simpler))
}

/// Returns the beginnings and ends of a list, the shortest first, then lists without one of the first items.
fn shorter_lists<'a, T: Clone + 'a>(items: Rc<[T]>, length: Length) -> Simpler<'a, Vec<T>> {
    let count = items.len();
    let least = usize::try_from(length.least).unwrap_or(usize::MAX);
    let longer = move |keep: &usize| Some(keep + (count - keep).div_ceil(2));
    let keeps = std::iter::successors(Some(least), longer).take_while(move |keep| *keep < count);
    let single = if count > least { count.min(POSITIONS) } else { 0 };
    let whole = Rc::clone(&items);
    let parts =
        keeps.flat_map(move |keep| [0..keep, count - keep..count]).map(move |part| whole[part].to_vec());
    let without_one = (0..single).map(move |index| [&items[..index], &items[index + 1..]].concat());
    Box::new(parts.chain(without_one))
}

fn smaller_objects<'a>(
    generators: &'a [(String, Generator)],
    members: &'a serde_json::Map<String, Value>,
) -> Simpler<'a, Value> {
    let each = generators.iter().filter_map(|(name, generator)| Some((name, generator, members.get(name)?)));
    Box::new(each.flat_map(move |(name, generator, member)| {
        smaller(generator, member).map(move |simpler| {
            let mut members = members.clone();
            members.insert(name.clone(), simpler);
            members.into()
        })
    }))
}

/// Returns the simplest value of each option before the one that made the value, then simpler values of that.
fn smaller_options<'a>(options: &'a [Generator], value: &'a Value) -> Simpler<'a, Value> {
    let Some(index) = options.iter().position(|option| could_make(option, value)) else { return none() };
    Box::new(options[..index].iter().map(simplest).chain(smaller(&options[index], value)))
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
        loop {
            let simpler = smaller(generator, &value).find(&fails);
            let Some(simpler) = simpler else { return value };
            assert!(could_make(generator, &simpler), "{simpler}");
            value = simpler;
        }
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

    #[test]
    fn candidates_are_made_one_by_one() {
        let length = Length { least: 8, most: 8 };
        let array = |items| Generator::Array { items: Box::new(items), length };
        let nested = (0..5).fold(Generator::Integer { minimum: 0, maximum: 9 }, |items, _| array(items));
        let value = (0..5).fold(json!(9), |item, _| vec![item; 8].into());
        // All candidates together would have a thousand million values.
        assert_eq!(smaller_arguments(&[nested], &[value]).take(320).count(), 320);
    }
}
