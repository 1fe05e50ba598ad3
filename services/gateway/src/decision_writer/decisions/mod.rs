//! The work items of the writer, and the answers to their callers.
//!
//! | file | contents |
//! |---|---|
//! | `call`, `message`, `refusal` | the decisions: about tool calls, scope commitments and amendments, and refusals of other requests |
//! | `call_needs` | the streams and claims that the decision of a call needs |
//! | `request`, `answer`, `undecided` | the channel to the caller, the answer, and calls and messages that need another round |
//! | `earlier_rounds` | what a call or a message brings from its earlier rounds |
//! | `session_with_account` | the session and the account that a decision changes |
//! | `authority`, `registry_position` | the part of AgentROA in the decision of a call |
//! | `question` | questions for approvers |
//! | `audit_records`, `ruling_records` | records of any kind, and those of rulings with their Verdicts |
//! | `denial`, `counted_denials` | denials that no decision makes, and the record of those without one of their own |
//! | `admitted_call`, `outcome`, `refund` | the permission to forward a call, its outcome, and the release of a reservation |
//! | `close` | the end of a stream |
//! | `tools` | pinned tools |

mod admitted_call;
mod answer;
mod audit_records;
mod authority;
mod call;
mod call_needs;
mod close;
mod counted_denials;
mod denial;
mod earlier_rounds;
mod message;
mod outcome;
mod question;
mod refund;
mod refusal;
mod registry_position;
mod request;
mod ruling_records;
mod session_with_account;
mod tools;
mod undecided;

pub use admitted_call::{AdmittedCall, HeldRequest};
pub use answer::DecisionAnswer;
pub use authority::EnvelopesSinceWork;
pub use call::CallWork;
pub use call_needs::{claims_of, streams_of_others};
pub use close::{CloseWork, Closed, KeepAliveWork};
pub use counted_denials::DenialsWork;
pub use denial::{Slot, UnrecordedDenial};
pub use earlier_rounds::EarlierRounds;
pub use message::MessageWork;
pub use outcome::{CallOutcomeReport, CallToSettle, DenialWithRecord, OutcomeWork};
pub use question::{AnswerWork, WithdrawWork};
pub use refusal::RefusalWork;
pub use request::Request;
pub use ruling_records::RecordReference;
pub use tools::ToolsWork;
pub use undecided::{CallAnswer, MessageAnswer, UndecidedCall, UndecidedMessage};
