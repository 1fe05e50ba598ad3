//! Arguments of tools: their JSON Schema, and their conversion to flags of the command that the tool calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::console::{Exit, Failure};

/// An argument of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The name in the tool's schema.
    pub name: &'static str,
    /// What becomes of the value.
    pub target: ArgumentTarget,
    /// The description for models and people.
    pub about: &'static str,
}

/// What becomes of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentTarget {
    /// A text, the value of this flag of the command.
    Flag(&'static str),
    /// A natural number, the value of this flag.
    Number(&'static str),
    /// A truth value; if true, this flag is set.
    Switch(&'static str),
    /// A text, the value of this criterion of `--by`.
    Criterion(&'static str),
    /// A text that the tool itself uses.
    Input,
    /// The same, required.
    RequiredInput,
}

/// The arguments of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolArguments {
    /// Flags, each in the form `--flag=value`, so that no value can be a flag.
    pub flags: Vec<String>,
    inputs: BTreeMap<&'static str, String>,
}

impl ToolArguments {
    /// Checks the arguments of a call of `tool`, which accepts the arguments in `known`.
    ///
    /// # Errors
    /// Code `usage` for an unknown or missing argument, or a value of another type.
    pub fn parse(tool: &str, known: &[Argument], given: &Map<String, Json>) -> Result<Self, Failure> {
        let mut arguments = Self::default();
        for (name, value) in given {
            let argument = known.iter().find(|argument| argument.name == name).ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|argument| argument.name).collect();
                usage(format!("{tool} has no argument {name}")).fact("arguments", names.join(", "))
            })?;
            arguments.add(argument, value)?;
        }
        let required = known.iter().filter(|argument| argument.target == ArgumentTarget::RequiredInput);
        match required.map(|argument| argument.name).find(|name| !arguments.inputs.contains_key(name)) {
            Some(missing) => Err(usage(format!("{tool} needs the argument {missing}"))),
            None => Ok(arguments),
        }
    }

    fn add(&mut self, argument: &Argument, value: &Json) -> Result<(), Failure> {
        let flag = |flag: &str, value: String| format!("--{flag}={value}");
        match argument.target {
            ArgumentTarget::Flag(name) => self.flags.push(flag(name, text(argument, value)?)),
            ArgumentTarget::Criterion(name) => {
                self.flags.push(flag("by", format!("{name}={}", text(argument, value)?)));
            }
            ArgumentTarget::Number(name) => {
                let number = value.as_u64().ok_or_else(|| wrong_type(argument, "a natural number"))?;
                self.flags.push(flag(name, number.to_string()));
            }
            ArgumentTarget::Switch(name) => {
                if value.as_bool().ok_or_else(|| wrong_type(argument, "true or false"))? {
                    self.flags.push(format!("--{name}"));
                }
            }
            ArgumentTarget::Input | ArgumentTarget::RequiredInput => {
                self.inputs.insert(argument.name, text(argument, value)?);
            }
        }
        Ok(())
    }

    /// Removes and returns the value of an input.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.inputs.remove(name)
    }
}

fn text(argument: &Argument, value: &Json) -> Result<String, Failure> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(argument, "a text"))
}

fn wrong_type(argument: &Argument, expected: &str) -> Failure {
    usage(format!("the argument {} must be {expected}", argument.name))
}

fn usage(what: String) -> Failure {
    Failure::new(Exit::Usage, "usage", what)
}

/// Returns the JSON Schema of a tool's arguments, an object.
pub fn schema(arguments: &[Argument]) -> Map<String, Json> {
    let property = |argument: &Argument| {
        let kind = match argument.target {
            ArgumentTarget::Number(_) => json!({ "type": "integer", "minimum": 0 }),
            ArgumentTarget::Switch(_) => json!({ "type": "boolean" }),
            _ => json!({ "type": "string" }),
        };
        let mut property = kind.as_object().cloned().unwrap_or_default();
        property.insert("description".into(), argument.about.into());
        (argument.name.to_owned(), Json::Object(property))
    };
    let properties: Map<String, Json> = arguments.iter().map(property).collect();
    let required = arguments.iter().filter(|argument| argument.target == ArgumentTarget::RequiredInput);
    let required: Vec<&str> = required.map(|argument| argument.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), Json::Object(properties));
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), false.into());
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Argument] = &[
        Argument { name: "subject", target: ArgumentTarget::Flag("subject"), about: "a" },
        Argument { name: "agent", target: ArgumentTarget::Criterion("agent"), about: "a" },
        Argument { name: "limit", target: ArgumentTarget::Number("limit"), about: "a" },
        Argument { name: "newest", target: ArgumentTarget::Switch("newest"), about: "a" },
        Argument { name: "session", target: ArgumentTarget::RequiredInput, about: "a" },
    ];

    fn parse(given: Json) -> Result<ToolArguments, Failure> {
        ToolArguments::parse("tool", KNOWN, given.as_object().unwrap())
    }

    #[test]
    fn values_become_flags_and_cannot_be_flags_themselves() {
        let mut arguments = parse(json!({
            "subject": "--url=http://elsewhere", "agent": "a", "limit": 2, "newest": true, "session": "--s"
        }))
        .unwrap();
        assert_eq!(
            arguments.flags,
            ["--by=agent=a", "--limit=2", "--newest", "--subject=--url=http://elsewhere"]
        );
        assert_eq!(arguments.take("session").as_deref(), Some("--s"));
    }

    #[test]
    fn an_unknown_or_missing_argument_and_a_wrong_type_are_refused() {
        for (given, why) in [
            (json!({ "session": "s", "url": "http://elsewhere" }), "no argument url"),
            (json!({}), "needs the argument session"),
            (json!({ "session": "s", "limit": -1 }), "limit must be a natural number"),
            (json!({ "session": "s", "newest": "yes" }), "newest must be true or false"),
            (json!({ "session": 1 }), "session must be a text"),
        ] {
            let refused = parse(given).unwrap_err();
            assert!(refused.to_text().contains(why), "{}", refused.to_text());
        }
    }
}
