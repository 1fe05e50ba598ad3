//! The failures of the service, as problem details.

use std::time::Duration;

use http::StatusCode;
use serving::problem::JsonProblem;
use verification_store::StoreError;

use crate::jobs::{CHAIN_HALTED, ENGINE_UNAVAILABLE, INTERRUPTED, NotAccepted};
use crate::limits::RETRY_AFTER;
use crate::queue::NoPlace;

/// 401 for a missing or unknown token.
pub fn unauthorized() -> JsonProblem {
    JsonProblem::new(StatusCode::UNAUTHORIZED, "token", "a bearer token of this service is needed")
}

/// 403 for work of another agent than the client's own.
pub fn subject() -> JsonProblem {
    let detail =
        "the token of this client is for the work of another agent: leave out subject, or name that agent";
    JsonProblem::new(StatusCode::FORBIDDEN, "subject", detail).at("/subject")
}

/// 422 for a part of the request that cannot be run.
pub fn cannot_be_run(pointer: String, detail: String) -> JsonProblem {
    JsonProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "request", detail).at(pointer)
}

/// 429 until the quota admits another request.
pub fn quota(wait: Duration) -> JsonProblem {
    let detail = "the quota of this client is used up";
    JsonProblem::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail).retry_after(wait.as_secs() + 1)
}

/// The problem of a job that has failed.
pub fn of_failure(code: String, reason: String) -> JsonProblem {
    match code.as_str() {
        ENGINE_UNAVAILABLE | INTERRUPTED => JsonProblem::new(StatusCode::UNPROCESSABLE_ENTITY, code, reason),
        CHAIN_HALTED => JsonProblem::new(StatusCode::CONFLICT, code, reason),
        _ => {
            JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, code, reason).retry_after(RETRY_AFTER.as_secs())
        }
    }
}

/// 503 for a database that does not answer.
pub fn database(error: &StoreError) -> JsonProblem {
    tracing::error!(%error, "a request could not be served");
    // The text may name paths; it is in the service's own log.
    unavailable("database", "the database does not answer")
}

/// The problem of a request that is not accepted.
pub fn not_accepted(error: NotAccepted) -> JsonProblem {
    match error {
        NotAccepted::Store(error) => database(&error),
        NotAccepted::NoPlace(why @ NoPlace::Full(_)) => unavailable("queue-full", why.to_string()),
        NotAccepted::NoPlace(why @ NoPlace::Share(_)) => {
            let problem = JsonProblem::new(StatusCode::TOO_MANY_REQUESTS, "queue-share", why.to_string());
            problem.retry_after(RETRY_AFTER.as_secs())
        }
        NotAccepted::NoPlace(why @ NoPlace::Unsigned(_)) => unavailable("unsigned-jobs", why.to_string()),
    }
}

fn unavailable(code: &'static str, detail: impl Into<std::borrow::Cow<'static, str>>) -> JsonProblem {
    JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(RETRY_AFTER.as_secs())
}
