//! The HTTP edge: middleware, access control, rate limits, request bodies and their parsing, problem details.

pub mod access;
pub mod admin;
pub mod below_path;
pub mod body;
pub mod body_budget;
pub mod conditional;
pub mod html;
pub mod media;
pub mod middleware;
#[cfg(test)]
mod middleware_tests;
pub mod multipart;
pub mod negotiation;
pub mod problem;
pub mod rate_limit;
pub mod request_parsing;
pub mod state;
