//! Headers that repeat the body of a modern request. A receiver that processes the body must check that they agree
//! (1.1).
//!
//! A child process sees no headers, so the gateway checks for it: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`, and
//! for a tool call one `Mcp-Param-…` header for each argument that the tool's schema marks with `x-mcp-header`. A
//! missing header is refused like a different value, and so is a header for an argument that the body does not have.

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::frame::{error_code, mirrored_value};
use crate::limits;
use crate::upstream::request::{METHOD, NAME, VERSION, mirrored_member};
use crate::upstream::text::{Json, RpcMessage, meta};
use crate::upstream::{UpstreamAnswer, answer};

/// Prefix of the header for a parameter.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The schema keyword that marks a parameter with a header.
const MARK: &str = "x-mcp-header";

/// A parameter that the schema marks with a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredHeader {
    /// The member names that lead to the parameter in the arguments.
    path: Vec<String>,
    header: HeaderName,
    is_integer: bool,
}

impl DeclaredHeader {
    /// The parameter in the arguments of a call. `None` if it is absent or `null`.
    fn parameter<'a>(&self, arguments: Option<Json<'a>>) -> Option<Json<'a>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        arguments?.at(&path).filter(|value| value.raw() != "null")
    }

    /// The header of a call with these arguments. `None` if the parameter is absent, or of a type that has no header.
    pub fn for_arguments(&self, arguments: Option<Json<'_>>) -> Option<(HeaderName, HeaderValue)> {
        let value = rendered(self.parameter(arguments)?)?;
        Some((self.header.clone(), mirrored_value(&value)))
    }
}

/// Checks that a modern request has its required `_meta` members, and that its headers match its body.
///
/// # Errors
/// The answer to the client, if not.
pub fn check(headers: &HeaderMap, message: &RpcMessage<'_>) -> Result<(), Box<UpstreamAnswer>> {
    let version = message.meta(meta::PROTOCOL_VERSION);
    let (Some(version), Some(_)) = (version, message.meta(meta::CLIENT_CAPABILITIES)) else {
        let why = "params._meta lacks io.modelcontextprotocol/protocolVersion or …/clientCapabilities";
        return Err(refused(message, error_code::INVALID_PARAMS, why));
    };
    let method = message.method().unwrap_or_default();
    let name = mirrored_member(&method).and_then(|member| message.param(member));
    let agree = version.string().is_some_and(|version| says(headers, &VERSION, &version))
        && says(headers, &METHOD, &method)
        && name.and_then(Json::string).is_none_or(|name| says(headers, &NAME, &name));
    match agree {
        true => Ok(()),
        false => {
            let why =
                "MCP-Protocol-Version, Mcp-Method or Mcp-Name is missing, repeated, or differs from the body";
            Err(refused(message, error_code::HEADER_MISMATCH, why))
        }
    }
}

/// Returns whether a call has arguments that may have a header, or a header for a parameter.
pub fn may_have_parameters(headers: &HeaderMap, message: &RpcMessage<'_>) -> bool {
    message.method().as_deref() == Some("tools/call")
        && (message.param("arguments").is_some_and(|arguments| !arguments.members().is_empty())
            || headers.keys().any(|name| name.as_str().starts_with(PARAM_PREFIX)))
}

/// Checks that the `Mcp-Param-…` headers match the arguments.
///
/// # Errors
/// The answer to the client, if not.
pub fn check_parameters(
    declared: &[DeclaredHeader],
    headers: &HeaderMap,
    message: &RpcMessage<'_>,
) -> Result<(), Box<UpstreamAnswer>> {
    let arguments = message.param("arguments");
    let wrong = declared.iter().find(|one| !agrees(one, headers, one.parameter(arguments)));
    match wrong {
        None => Ok(()),
        Some(one) => {
            let why =
                format!("the header {} is missing, repeated, or differs from the arguments", one.header);
            Err(refused(message, error_code::HEADER_MISMATCH, &why))
        }
    }
}

/// The parameters of a tool that have headers: marked strings, integers and booleans that are reached through
/// `properties` only. If a schema marks anything else, or marks two parameters with one header, the result is empty:
/// clients do not show such a tool.
pub fn declared(schema: Json<'_>) -> Vec<DeclaredHeader> {
    let mut found = Vec::new();
    let sound = find(schema, &mut Vec::new(), &mut found) && !marks_elsewhere(schema, found.len());
    let mut names: Vec<&HeaderName> = found.iter().map(|one| &one.header).collect();
    names.sort_by_key(|name| name.as_str());
    names.dedup();
    if sound && names.len() == found.len() { found } else { Vec::new() }
}

/// Collects the marked parameters. Returns false if a mark is invalid, or the schema is too deep to be searched.
fn find(schema: Json<'_>, path: &mut Vec<String>, found: &mut Vec<DeclaredHeader>) -> bool {
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
                    found.push(DeclaredHeader { path: path.clone(), header, is_integer });
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

/// Returns whether the schema has more marks than the `found` ones. A mark in data of the schema, such as a default
/// value, counts too.
fn marks_elsewhere(schema: Json<'_>, found: usize) -> bool {
    schema.raw().matches(&format!("\"{MARK}\"")).count() != found
}

fn agrees(one: &DeclaredHeader, headers: &HeaderMap, value: Option<Json<'_>>) -> bool {
    let given: Vec<_> = headers.get_all(&one.header).iter().collect();
    match (&*given, value.and_then(rendered)) {
        ([], None) => true,
        ([given], Some(rendered)) => {
            let Some(given) = given.to_str().ok().and_then(decoded) else { return false };
            let as_numbers = || Some(whole(&given)? == whole(&rendered)?);
            given == rendered || (one.is_integer && as_numbers() == Some(true))
        }
        _ => false,
    }
}

/// The text of a parameter in its header. `None` if it is an object or an array.
fn rendered(value: Json<'_>) -> Option<String> {
    match value.raw() {
        raw if raw.starts_with(['{', '[']) => None,
        raw => Some(value.string().unwrap_or_else(|| raw.to_owned())),
    }
}

/// Parses an integer in the form `42` or `42.0`; other forms such as `4.2e1` do not belong in a header.
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

/// The value of a header, with its base64 form decoded.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok(),
    }
}

fn refused(message: &RpcMessage<'_>, code: i32, why: &str) -> Box<UpstreamAnswer> {
    Box::new(answer::error(StatusCode::BAD_REQUEST, message.id().map(Json::raw), code, why).unsent())
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
        check_parameters(&declared, &map, &RpcMessage::read(&text).unwrap()).is_ok()
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
