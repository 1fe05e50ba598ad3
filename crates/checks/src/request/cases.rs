//! Test cases (tier 0): calls of functions, and runs of programs, with what they must return or write.

use serde_json::Value;

use super::artifact::Artifact;
use crate::error::{Form, Members, RequestError, list, only, short_text};
use crate::limits::{ARGUMENTS, NAME_CHARACTERS, OUTPUT, TESTS};
use sandbox::Language;

/// The function that is called if a test names none.
pub const DEFAULT_FUNCTION: &str = "main";

/// A test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name, which no other test of the request has.
    pub name: String,
    /// What is run.
    pub action: TestAction,
    /// What must come of it.
    pub expected: Expected,
}

/// What a test runs.
#[derive(Clone, Debug, PartialEq)]
pub enum TestAction {
    /// A call of a function of the artifact's first file.
    Function(FunctionCall),
    /// A run of the artifact's first file as a program.
    Program {
        /// The arguments.
        arguments: Vec<String>,
        /// The standard input.
        stdin: String,
    },
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// The name of the function.
    pub function: String,
    /// The arguments.
    pub arguments: Vec<Value>,
}

/// What must come of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The function returns this value.
    Value(Value),
    /// The function throws, and its message contains the text.
    Throw(String),
    /// The program ends like this.
    Exit {
        /// Its standard output, exactly or as JSON; `None` for any.
        stdout: Option<ExpectedOutput>,
        /// Its exit code.
        code: i32,
    },
}

/// What a program must write.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedOutput {
    /// This text.
    Text(String),
    /// A JSON text of this value.
    Json(Value),
}

/// Reads the required member `tests`.
pub(super) fn read(top: &Members<'_>, artifact: &Artifact) -> Result<Vec<Case>, RequestError> {
    let items = list(top, "tests", TESTS)?;
    let read = |(index, item)| {
        let test = Members::of(item, format!("/tests/{index}"))?;
        Case::read(&test, artifact)
    };
    let cases = items.iter().enumerate().map(read).collect::<Result<Vec<Case>, RequestError>>()?;
    distinct(top, "tests", cases.iter().map(|case| case.name.as_str()))?;
    Ok(cases)
}

/// Refuses two checks with one name, and a list of none.
pub(super) fn distinct<'a>(
    top: &Members<'_>,
    list: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), RequestError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(top.unfit(Form, list, name, "a name of its own for each check"));
        }
    }
    match seen.is_empty() {
        true => Err(top.broken(Form, list, "at least one check is needed here")),
        false => Ok(()),
    }
}

impl Case {
    fn read(test: &Members<'_>, artifact: &Artifact) -> Result<Self, RequestError> {
        let name = short_text(test, "name", NAME_CHARACTERS)?;
        let is_program = ["stdin", "args", "expected_stdout", "expected_json", "expected_exit"];
        let (action, expected) = match is_program.iter().any(|member| test.has(member)) {
            true => program(test, artifact)?,
            false => function(test, artifact)?,
        };
        Ok(Self { name, action, expected })
    }
}

fn function(test: &Members<'_>, artifact: &Artifact) -> Result<(TestAction, Expected), RequestError> {
    only(test, &["name", "function", "arguments", "expected", "expect_throw"])?;
    require_language(test, artifact)?;
    let arguments = match test.has("arguments") {
        true => list(test, "arguments", ARGUMENTS)?.to_vec(),
        false => Vec::new(),
    };
    let call = FunctionCall { function: function_name(test, "function")?, arguments };
    let expected = match (test.get("expected"), test.get("expect_throw")) {
        (Some(value), None) => Expected::Value(value.clone()),
        (None, Some(Value::Bool(true))) => Expected::Throw(String::new()),
        (None, Some(Value::String(text))) => Expected::Throw(text.clone()),
        (None, Some(_)) => {
            return Err(test.broken(Form, "expect_throw", "true, or a part of the message, is needed here"));
        }
        _ => return Err(test.broken(Form, "expected", "a test has either expected or expect_throw")),
    };
    Ok((TestAction::Function(call), expected))
}

/// Reads an optional name of a function; by default, [`DEFAULT_FUNCTION`].
pub(super) fn function_name(members: &Members<'_>, member: &str) -> Result<String, RequestError> {
    let Some(name) = members.optional_text(member)? else { return Ok(DEFAULT_FUNCTION.to_owned()) };
    let starts = |first: char| first.is_ascii_alphabetic() || first == '_' || first == '$';
    let continues = |character: char| starts(character) || character.is_ascii_digit();
    match name.starts_with(starts) && name.len() <= NAME_CHARACTERS && name.chars().all(continues) {
        true => Ok(name.to_owned()),
        false => {
            let needed = "an identifier of ASCII letters, digits, _ and $";
            Err(members.unfit(Form, member, name, needed))
        }
    }
}

/// Refuses a call of a function if the artifact has no language.
pub(super) fn require_language(members: &Members<'_>, artifact: &Artifact) -> Result<(), RequestError> {
    match artifact.language() {
        Some(_) => Ok(()),
        None => Err(members.broken(Form, "function", "a function needs the artifact's language")),
    }
}

fn program(test: &Members<'_>, artifact: &Artifact) -> Result<(TestAction, Expected), RequestError> {
    only(test, &["name", "stdin", "args", "expected_stdout", "expected_json", "expected_exit"])?;
    if artifact.language() == Some(Language::JavaScript) {
        let why = "JavaScript is run without standard input and output: test a function";
        return Err(test.broken(Form, "stdin", why));
    }
    let arguments = match test.has("args") {
        true => test.texts("args")?.into_iter().map(str::to_owned).collect(),
        false => Vec::new(),
    };
    check_arguments(test, &arguments)?;
    let stdin = test.optional_text("stdin")?.unwrap_or_default().to_owned();
    let stdout = match (test.optional_text("expected_stdout")?, test.get("expected_json")) {
        (Some(text), None) => Some(ExpectedOutput::Text(text.to_owned())),
        (None, Some(value)) => Some(ExpectedOutput::Json(value.clone())),
        (None, None) => None,
        _ => {
            let why = "a test has expected_stdout or expected_json, not both";
            return Err(test.broken(Form, "expected_json", why));
        }
    };
    Ok((TestAction::Program { arguments, stdin }, Expected::Exit { stdout, code: exit_code(test)? }))
}

fn check_arguments(test: &Members<'_>, arguments: &[String]) -> Result<(), RequestError> {
    let bytes: usize = arguments.iter().map(String::len).sum();
    let fits = arguments.len() <= ARGUMENTS
        && bytes as u64 <= OUTPUT / 16
        && !arguments.iter().any(|argument| argument.contains('\0'));
    match fits {
        true => Ok(()),
        false => {
            Err(test.broken(Form, "args", "too many or too long arguments, or one with a null character"))
        }
    }
}

fn exit_code(test: &Members<'_>) -> Result<i32, RequestError> {
    match test.optional_integer("expected_exit")? {
        None => Ok(0),
        Some(code) => i32::try_from(code).ok().filter(|code| (0..=128).contains(code)).ok_or_else(|| {
            test.broken(Form, "expected_exit", "an exit code is 0 to 128; above it, signals begin")
        }),
    }
}
