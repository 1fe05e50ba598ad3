//! Headers that repeat the body of a modern request: whoever processes the body must see that they agree (1.1).
//!
//! A child has no headers, so it is done here: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`, and for a tool call an
//! `Mcp-Param-…` for each argument that the tool's schema marks with `x-mcp-header`. A header that is missing is as wrong
//! as one that says something else; one that says something of which the body knows nothing is wrong too.

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::limits;
use crate::upstream::request::{METHOD, NAME, VERSION};
use crate::upstream::text::{Json, Message, meta};
use crate::upstream::{Answer, answer};

/// Before the name of a parameter that has a header.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// What a schema marks such a parameter with.
const MARK: &str = "x-mcp-header";

/// A parameter that has a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The members that lead to it.
    path: Vec<String>,
    header: HeaderName,
    is_integer: bool,
}

/// Whether the request is whole, and its headers say what it says.
///
/// # Errors
/// What the client is told if not.
pub fn check(headers: &HeaderMap, message: &Message<'_>) -> Result<(), Box<Answer>> {
    let version = message.meta(meta::PROTOCOL_VERSION);
    let (Some(version), Some(_)) = (version, message.meta(meta::CLIENT_CAPABILITIES)) else {
        let why = "params._meta lacks io.modelcontextprotocol/protocolVersion or …/clientCapabilities";
        return Err(refused(message, answer::INVALID_PARAMS, why));
    };
    let method = message.method().unwrap_or_default();
    let name = match method.as_str() {
        "tools/call" | "prompts/get" => message.param("name"),
        "resources/read" => message.param("uri"),
        _ => None,
    };
    let agree = version.string().is_some_and(|version| says(headers, &VERSION, &version))
        && says(headers, &METHOD, &method)
        && name.and_then(Json::string).is_none_or(|name| says(headers, &NAME, &name));
    match agree {
        true => Ok(()),
        false => {
            let why = "MCP-Protocol-Version, Mcp-Method or Mcp-Name is missing, repeated, or not what the body says";
            Err(refused(message, answer::HEADER_MISMATCH, why))
        }
    }
}

/// Whether a call has anything that could have a header, or a header for it.
pub fn may_have_parameters(headers: &HeaderMap, message: &Message<'_>) -> bool {
    message.method().as_deref() == Some("tools/call")
        && (message.param("arguments").is_some_and(|arguments| !arguments.members().is_empty())
            || headers.keys().any(|name| name.as_str().starts_with(PARAM_PREFIX)))
}

/// Whether the headers for parameters say what the arguments say.
///
/// # Errors
/// What the client is told if not.
pub fn check_parameters(
    declared: &[Declared],
    headers: &HeaderMap,
    message: &Message<'_>,
) -> Result<(), Box<Answer>> {
    let arguments = message.param("arguments");
    let wrong = declared.iter().find(|one| {
        let path: Vec<&str> = one.path.iter().map(String::as_str).collect();
        let value = arguments.and_then(|arguments| arguments.at(&path)).filter(|value| value.raw() != "null");
        !agrees(one, headers, value)
    });
    match wrong {
        None => Ok(()),
        Some(one) => {
            let why =
                format!("the header {} is missing, repeated, or not what the arguments say", one.header);
            Err(refused(message, answer::HEADER_MISMATCH, &why))
        }
    }
}

/// The parameters of a tool that have headers: marked strings, whole numbers and booleans that only `properties` lead to.
/// A schema that marks anything else, or two with one header, marks nothing: clients do not show such a tool.
pub fn declared(schema: Json<'_>) -> Vec<Declared> {
    let mut found = Vec::new();
    let sound = find(schema, &mut Vec::new(), &mut found) && !marks_elsewhere(schema, found.len());
    let mut names: Vec<&HeaderName> = found.iter().map(|one| &one.header).collect();
    names.sort_by_key(|name| name.as_str());
    names.dedup();
    if sound && names.len() == found.len() { found } else { Vec::new() }
}

/// Whether the marks that were found are sound. A schema that is too deep to be looked at is not.
fn find(schema: Json<'_>, path: &mut Vec<String>, found: &mut Vec<Declared>) -> bool {
    if path.len() > limits::SCHEMA_DEPTH {
        return false;
    }
    for (name, property) in schema.get("properties").map(Json::members).unwrap_or_default() {
        path.push(name);
        if let Some(mark) = property.get(MARK) {
            let kind = property.get("type").and_then(Json::string);
            let header = mark.string().map(|name| format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase()));
            match (header.and_then(|name| HeaderName::try_from(name).ok()), kind.as_deref()) {
                (Some(header), Some("string" | "integer" | "boolean")) => {
                    let is_integer = kind.as_deref() == Some("integer");
                    found.push(Declared { path: path.clone(), header, is_integer });
                }
                _ => return false,
            }
        }
        if !find(property, path, found) {
            return false;
        }
        path.pop();
    }
    true
}

/// Whether there are more marks in the schema than those. A mark in what is data and no schema counts as one too many.
fn marks_elsewhere(schema: Json<'_>, found: usize) -> bool {
    schema.raw().matches(&format!("\"{MARK}\"")).count() != found
}

fn agrees(one: &Declared, headers: &HeaderMap, value: Option<Json<'_>>) -> bool {
    let given: Vec<_> = headers.get_all(&one.header).iter().collect();
    let rendered = value.and_then(|value| match value.raw() {
        "true" | "false" => Some(value.raw().to_owned()),
        raw if raw.starts_with(['{', '[']) => None,
        raw => Some(value.string().unwrap_or_else(|| raw.to_owned())),
    });
    match (&*given, rendered) {
        ([], None) => true,
        ([given], Some(rendered)) => {
            let Some(given) = given.to_str().ok().and_then(decoded) else { return false };
            let as_numbers = || Some(whole(&given)? == whole(&rendered)?);
            given == rendered || (one.is_integer && as_numbers() == Some(true))
        }
        _ => false,
    }
}

/// A whole number, `42` or `42.0`; not what a header should not have, like `4.2e1`.
fn whole(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok()).flatten()
}

fn says(headers: &HeaderMap, name: &HeaderName, expected: &str) -> bool {
    let mut given = headers.get_all(name).iter();
    match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().ok().and_then(decoded).as_deref() == Some(expected),
        _ => false,
    }
}

/// A header's value: as it is, or out of its base64.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok(),
    }
}

fn refused(message: &Message<'_>, code: i64, why: &str) -> Box<Answer> {
    Box::new(answer::error(StatusCode::BAD_REQUEST, message.id().map(Json::raw), code, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;

    fn ok(arguments: &str, headers: &[(&str, &str)]) -> bool {
        let text = format!(r#"{{"id":1,"method":"tools/call","params":{{"arguments":{arguments}}}}}"#);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let declared = declared(Json::whole(SCHEMA).unwrap());
        assert_eq!(declared.len(), 2);
        check_parameters(&declared, &map, &Message::read(&text).unwrap()).is_ok()
    }

    #[test]
    fn a_marked_argument_and_its_header_are_there_together_and_say_the_same() {
        assert!(ok("{}", &[]));
        assert!(ok(r#"{"region":"eu"}"#, &[("mcp-param-region", "eu")]));
        assert!(ok(r#"{"region":"gr\u00fcn"}"#, &[("mcp-param-region", "=?base64?Z3LDvG4=?=")]));
        assert!(ok(r#"{"deep":{"n":42.0}}"#, &[("mcp-param-n", "42")]));
        assert!(ok(r#"{"region":null}"#, &[]));
        assert!(!ok(r#"{"region":"eu"}"#, &[]));
        assert!(!ok("{}", &[("mcp-param-region", "eu")]));
        assert!(!ok(r#"{"region":"eu"}"#, &[("mcp-param-region", "us")]));
        assert!(!ok(r#"{"region":"eu"}"#, &[("mcp-param-region", "eu"), ("mcp-param-region", "eu")]));
        assert!(!ok(r#"{"region":"eu"}"#, &[("mcp-param-region", "=?base64?!?=")]));
    }

    #[test]
    fn a_schema_with_a_mark_where_none_may_be_marks_nothing() {
        for schema in [
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"not a token"}}}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            &format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(5_000), "}}".repeat(5_000)),
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        ] {
            assert_eq!(declared(Json::whole(schema).unwrap()), [], "{schema:.200}");
        }
    }
}
