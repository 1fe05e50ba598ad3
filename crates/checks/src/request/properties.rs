//! Properties that must hold for generated inputs (tier 2).

use expression::Expression;

use super::artifact::Artifact;
use super::cases::{distinct, function_name, require_language};
use super::conditions::condition;
use super::generator::{Generator, least_size};
use crate::error::{Form, Members, RequestError, bounded, list, only, short_text};
use crate::limits::{
    ARGUMENTS, CASES, DEFAULT_CASES, GENERATED_SIZE, GENERATOR_PARTS, NAME_CHARACTERS, PROPERTIES,
};

/// A property of a function.
#[derive(Clone, Debug)]
pub struct Property {
    /// The name, which no other property of the request has.
    pub name: String,
    /// The function.
    pub function: String,
    /// A generator for each argument.
    pub arguments: Vec<Generator>,
    /// A function that is called with the output of the first call as its only argument.
    pub again: Option<String>,
    /// The condition over `input.arguments`, `input.output` and `input.again`.
    pub condition: Expression,
    /// The number of generated cases.
    pub cases: u64,
}

/// Reads the required member `properties`.
pub(super) fn read(top: &Members<'_>, artifact: &Artifact) -> Result<Vec<Property>, RequestError> {
    let items = list(top, "properties", PROPERTIES)?;
    let read = |(index, item)| {
        let property = Members::of(item, format!("/properties/{index}"))?;
        require_language(&property, artifact)?;
        Property::read(&property)
    };
    let properties = items.iter().enumerate().map(read).collect::<Result<Vec<Property>, RequestError>>()?;
    distinct(top, "properties", properties.iter().map(|property| property.name.as_str()))?;
    Ok(properties)
}

impl Property {
    fn read(property: &Members<'_>) -> Result<Self, RequestError> {
        only(property, &["name", "function", "arguments", "again", "property", "cases"])?;
        let items = list(property, "arguments", ARGUMENTS)?;
        let mut parts = GENERATOR_PARTS;
        let pointer = property.pointer("arguments");
        let generator = |(index, item)| Generator::read(item, format!("{pointer}/{index}"), 1, &mut parts);
        let arguments =
            items.iter().enumerate().map(generator).collect::<Result<Vec<Generator>, RequestError>>()?;
        if least_size(&arguments) > GENERATED_SIZE {
            let why = format!(
                "even the smallest arguments have more than {GENERATED_SIZE} values and bytes of texts and names"
            );
            return Err(property.broken(Form, "arguments", why));
        }
        let condition = condition(property, "property")?;
        let again = property.optional("again", function_name)?;
        let reads_again = condition.members().iter().any(|path| path.first() == Some(&"again"));
        if reads_again && again.is_none() {
            let why = "the condition reads input.again: name the function that is called with the output";
            return Err(property.broken(Form, "again", why));
        }
        Ok(Self {
            name: short_text(property, "name", NAME_CHARACTERS)?,
            function: function_name(property, "function")?,
            arguments,
            again,
            condition,
            cases: bounded(property, "cases", 1..=CASES, DEFAULT_CASES)?,
        })
    }
}
