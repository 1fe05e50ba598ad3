//! The approvals listener: approvers read the questions that wait for them, and send their signed answers.
//!
//! It has an address of its own, apart from the clients', and accepts no credential of theirs. Reading needs a fresh
//! proof, signed by an approver's key for this listener (`Authorization: Bearer`), and shows the questions that this
//! approver may answer. An answer is its own credential: its signature counts, and not its sender.
//!
//! | request | answer |
//! |---|---|
//! | `GET /approvals` | the open questions |
//! | `GET /approvals/{id}` | one of them, with its answer once there is one |
//! | `POST /approvals/{id}` | takes a signed answer, once |
//!
//! Not here: the form of questions and answers (`admission::approval`), and the decision about the call (`decision_writer`).

mod client;

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use admission::approval::{ApprovalError, Question, SignedReaderProof, Subject, SubjectKind, is_id};
use admission::limits::MAX_APPROVAL;
use admission::rules::{Approver, Rules};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use serving::problem::{JsonProblem, ProblemDetails};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use client::{ApprovalsClient, ClientError, RefusalOfRequest};

use crate::current_rules::CurrentRules;
use crate::decision_writer::{DecisionWriter, NotAnswered, QuestionStatus, StoredQuestion};
use crate::upstream::fields;

/// What the listener has, for the 404 of other paths.
pub(crate) const RESOURCES: &str = "the resources are /approvals, /approvals/{id} and /openapi.json";

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    writer: DecisionWriter,
    rules: CurrentRules,
    origin: Arc<str>,
}

/// The open questions that an approver may answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuestionList {
    /// The approver's name in the gateway's configuration.
    pub approver: String,
    /// The questions, oldest first.
    pub questions: Vec<Question>,
}

/// A question, with its state and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuestionView {
    /// The approver's name in the gateway's configuration.
    pub approver: String,
    /// The state of the question: `open`, `answered` or `over`.
    pub standing: String,
    /// The question as it was asked.
    pub question: Question,
    /// The approver's signed answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The question whose answer was taken.
#[derive(Serialize, ToSchema)]
struct AnsweredQuestion {
    /// The question's id.
    question: String,
}

/// The routes for approvers, at this address. `url` is the public URL, unless it is the address itself; the proofs are
/// signed for it.
pub(crate) fn routes(
    address: SocketAddr,
    url: Option<&str>,
    writer: DecisionWriter,
    rules: CurrentRules,
) -> Router {
    let origin = url.map_or_else(|| format!("http://{address}"), |url| url.trim_end_matches('/').to_owned());
    Router::from(described()).layer(DefaultBodyLimit::max(MAX_APPROVAL)).with_state(Shared {
        writer,
        rules,
        origin: origin.into(),
    })
}

/// The routes with their OpenAPI description.
pub(crate) fn described() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, answer))
}

/// The open questions that the approver may answer.
#[utoipa::path(
    get,
    path = "/approvals",
    operation_id = "questions",
    tag = "Approvals",
    responses(
        (status = 200, description = "The questions, oldest first", body = QuestionList),
        (status = 401, description = "No fresh proof of an approver", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The questions cannot be read now", body = ProblemDetails, content_type = "application/problem+json")
    ),
    security(("approver" = []))
)]
async fn list(State(shared): State<Shared>, headers: HeaderMap) -> Result<Json<QuestionList>, JsonProblem> {
    let reader = shared.reader(&headers)?;
    let open = shared.writer.open_questions().await.map_err(|error| unavailable(&error))?;
    let mut approver = None;
    let mut questions = Vec::new();
    for question in open {
        if let Some(name) = shared.may_answer(&reader, &question.subject) {
            approver = Some(name);
            questions.push(question);
        }
    }
    let approver = approver.or_else(|| shared.name_of(&reader)).ok_or_else(not_an_approver)?;
    Ok(Json(QuestionList { approver, questions }))
}

/// A question that the approver may answer, with its answer once there is one.
#[utoipa::path(
    get,
    path = "/approvals/{id}",
    operation_id = "question",
    tag = "Approvals",
    params(("id" = String, Path, description = "The question's id: 32 hexadecimal digits")),
    responses(
        (status = 200, description = "The question", body = QuestionView),
        (status = 401, description = "No fresh proof of an approver", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "No question that this approver may answer has the id", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The question cannot be read now", body = ProblemDetails, content_type = "application/problem+json")
    ),
    security(("approver" = []))
)]
async fn show(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<QuestionView>, JsonProblem> {
    let reader = shared.reader(&headers)?;
    let stored = shared.stored_question(&id).await?;
    // A question that an approver may not answer is reported like one that does not exist.
    let approver = shared.may_answer(&reader, &stored.question.subject).ok_or_else(unknown)?;
    let status = match stored.status(shared.writer.now()) {
        QuestionStatus::Open => "open",
        QuestionStatus::Answered => "answered",
        QuestionStatus::Over => "over",
    };
    let StoredQuestion { question, answer, spent: _ } = stored;
    Ok(Json(QuestionView { approver, standing: status.to_owned(), question, answer }))
}

/// Answer a question, once.
#[utoipa::path(
    post,
    path = "/approvals/{id}",
    tag = "Approvals",
    params(("id" = String, Path, description = "The question's id: 32 hexadecimal digits")),
    request_body(content = String, content_type = "text/plain", description = "The signed answer: a compact JWS over an approval"),
    responses(
        (status = 200, description = "The answer was taken", body = AnsweredQuestion),
        (status = 400, description = "Not a signed approval, or not UTF-8", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "The signature, the approver or the subject is another", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "There is no such question", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "The question has an answer", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 410, description = "The question has expired", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "The answer is too long", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The answer cannot be stored now", body = ProblemDetails, content_type = "application/problem+json")
    )
)]
async fn answer(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    body: String,
) -> Result<Json<AnsweredQuestion>, JsonProblem> {
    if !is_id(&id) {
        return Err(unknown());
    }
    let question =
        shared.writer.answer_question(&id, body.trim()).await.map_err(|error| not_answered(&error))?;
    tracing::info!(question = id, route = question.subject.route, "a question was answered");
    Ok(Json(AnsweredQuestion { question: id }))
}

impl Shared {
    /// Returns the proof in a request, if an approver of any route signed it for this listener. The right to read a
    /// question is checked separately.
    fn reader(&self, headers: &HeaderMap) -> Result<SignedReaderProof, JsonProblem> {
        let text = fields::text(headers, &header::AUTHORIZATION);
        let text = text.and_then(|text| text.strip_prefix("Bearer ")).ok_or_else(not_an_approver)?;
        let reader = SignedReaderProof::parse(text, self.writer.now()).map_err(|_| not_an_approver())?;
        match reader.reader().origin == *self.origin && self.name_of(&reader).is_some() {
            true => Ok(reader),
            false => Err(not_an_approver()),
        }
    }

    /// Returns the approver's name, on any route.
    fn name_of(&self, reader: &SignedReaderProof) -> Option<String> {
        let (rules, now) = (self.rules.load(), self.writer.now());
        let found = rules.values().find_map(|rules: &Arc<Rules>| rules.approvals.reader(reader, now).ok());
        found.map(|approver| approver.name.clone())
    }

    /// Returns the approver's name, if it may answer a question about this subject.
    fn may_answer(&self, reader: &SignedReaderProof, subject: &Subject) -> Option<String> {
        let rules = self.writer.rules_of(&subject.route);
        let approver: &Approver = rules.approvals.reader(reader, self.writer.now()).ok()?;
        let kind: SubjectKind = subject.kind;
        approver.may_answer(kind, subject.name()).then(|| approver.name.clone())
    }

    async fn stored_question(&self, id: &str) -> Result<StoredQuestion, JsonProblem> {
        if !is_id(id) {
            return Err(unknown());
        }
        let stored = self.writer.question(id).await.map_err(|error| unavailable(&error))?;
        stored.ok_or_else(unknown)
    }
}

fn unknown() -> JsonProblem {
    JsonProblem::new(StatusCode::NOT_FOUND, "no-question", NotAnswered::Unknown.to_string())
}

fn not_an_approver() -> JsonProblem {
    let detail =
        "questions are shown to approvers only: sign a request for this address with an approver's key";
    JsonProblem::new(StatusCode::UNAUTHORIZED, "not-an-approver", detail)
}

fn unavailable(why: &dyn Display) -> JsonProblem {
    JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, "try-again", why.to_string())
}

/// The problem of an answer that is not taken.
fn not_answered(error: &NotAnswered) -> JsonProblem {
    let (status, code) = match error {
        NotAnswered::Unknown => (StatusCode::NOT_FOUND, "no-question"),
        NotAnswered::Answered => (StatusCode::CONFLICT, "question-answered"),
        NotAnswered::Over => (StatusCode::GONE, "question-over"),
        NotAnswered::Approval(ApprovalError::Form(_)) => (StatusCode::BAD_REQUEST, "approval-refused"),
        NotAnswered::Approval(_) => (StatusCode::FORBIDDEN, "approval-refused"),
        NotAnswered::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "try-again"),
    };
    JsonProblem::new(status, code, error.to_string())
}
