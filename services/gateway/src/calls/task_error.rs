//! The JSON-RPC errors of refused requests about tasks.
//!
//! A task that the gateway does not know, or that belongs to another caller, does not exist for the caller: it gets the
//! error that MCP defines for a task that the server does not know.

use admission::principal::Era;
use http::StatusCode;
use vap::reason::Reason;

use super::clients;
use super::refused::REFUSED;
use crate::frame::Frame;
use crate::frame::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY};

/// The modern extension for tasks.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The capabilities that a client with the extension declares.
const REQUIRED: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
/// The methods of 2025-11-25 that name a task.
const LEGACY_METHODS: [&str; 3] = ["tasks/get", "tasks/result", "tasks/cancel"];
/// The methods of the extension.
const MODERN_METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// A JSON-RPC error, without its text.
#[derive(Clone, Copy, Debug)]
pub struct TaskError {
    /// The HTTP status of the answer.
    pub status: StatusCode,
    /// The code.
    pub code: i32,
    /// The capabilities that the client has not declared, as JSON.
    pub required: Option<&'static str>,
}

impl TaskError {
    /// Returns the error for a request that was refused for this reason. `has_tasks`: the caller's revision has tasks.
    pub fn of(request: &Frame, (era, has_tasks): (Era, bool), reason: Option<&Reason>) -> Self {
        let is_unknown = reason == Some(&Reason::WrongPrincipal);
        let is_legacy_method = || has_tasks && is_one_of(request, LEGACY_METHODS);
        match era {
            _ if !is_unknown => Self::new(StatusCode::OK, REFUSED),
            Era::Legacy if is_legacy_method() => Self::new(StatusCode::OK, INVALID_PARAMS),
            Era::Legacy => Self::new(StatusCode::OK, METHOD_NOT_FOUND),
            Era::Modern => Self::modern(request),
        }
    }

    fn modern(request: &Frame) -> Self {
        if !is_one_of(request, MODERN_METHODS) {
            return Self::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND);
        }
        match clients::modern_has_extension(request, EXTENSION) {
            true => Self::new(StatusCode::BAD_REQUEST, INVALID_PARAMS),
            false => {
                Self { required: Some(REQUIRED), ..Self::new(StatusCode::BAD_REQUEST, MISSING_CAPABILITY) }
            }
        }
    }

    const fn new(status: StatusCode, code: i32) -> Self {
        Self { status, code, required: None }
    }
}

fn is_one_of(request: &Frame, methods: [&str; 3]) -> bool {
    request.method().is_some_and(|method| methods.contains(&method))
}
