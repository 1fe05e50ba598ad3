//! The jobs of the writer: calls, messages, outcomes, refusals of other requests, questions, and the end of a stream.

mod admitted_call;
mod answer;
mod audit_records;
mod authority;
mod call;
mod close;
mod copies;
mod counted_denials;
mod denial;
mod earlier_passes;
mod message;
mod outcome;
mod question;
mod refund;
mod refusal;
mod registry_position;
mod request;
mod tools;
mod undecided;
mod writing;

pub use admitted_call::{AdmittedCall, HeldRequest};
pub use answer::DecisionAnswer;
pub use authority::EnvelopesSinceWork;
pub use call::{CallWork, claims_of, streams_of_others};
pub use close::{AliveWork, CloseWork, Closed};
pub use counted_denials::DenialsWork;
pub use denial::{Slot, UnrecordedDenial};
pub use earlier_passes::EarlierPasses;
pub use message::MessageWork;
pub use outcome::{CallOutcomeReport, OutcomeWork};
pub use question::{AnswerWork, WithdrawWork};
pub use refusal::RefusalWork;
pub use request::Request;
pub use tools::ToolsWork;
pub use undecided::{CallAnswer, MessageAnswer, UndecidedCall, UndecidedMessage};
pub use writing::RecordReference;
