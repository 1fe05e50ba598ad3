//! The JSON-RPC error codes of the gateway's answers: those that JSON-RPC 2.0 defines (section 5.1), and those that MCP
//! and its SDKs define in the range for servers, -32000 to -32099.
//!
//! Not here: codes that only this gateway uses, which stand beside the errors themselves, and codes of A2A.

/// "Parse error": the text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// "Invalid Request": the JSON is not a request that the receiver accepts.
pub const INVALID_REQUEST: i32 = -32600;
/// "Method not found".
pub const METHOD_NOT_FOUND: i32 = -32601;
/// "Invalid params".
pub const INVALID_PARAMS: i32 = -32602;
/// "Internal error".
pub const INTERNAL_ERROR: i32 = -32603;

/// The code of MCP's SDKs for a request that the transport refuses: without a session, for a second stream, or with a
/// wrong HTTP method.
pub const TRANSPORT_REFUSAL: i32 = -32000;
/// The code of MCP's SDKs for an unknown or ended session; also that of a server that is busy.
pub const UNAVAILABLE: i32 = -32001;
/// MCP: the resource does not exist. Legacy eras only; the modern era uses [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// MCP 2026-07-28: a header does not match the body.
pub const HEADER_MISMATCH: i32 = -32020;
/// MCP 2026-07-28: the client has not declared a capability that the request needs.
pub const MISSING_CAPABILITY: i32 = -32021;
/// MCP 2026-07-28: the server does not support the protocol revision of the request.
pub const UNSUPPORTED_REVISION: i32 = -32022;
