//! The jobs of the writer: calls, messages, outcomes, refusals of other requests, questions, and the end of a stream.

mod call;
mod close;
mod copies;
mod denials;
mod message;
mod outcome;
mod question;
mod refund;
mod refusal;
mod tools;
mod writing;

pub use call::{CallWork, Done};
pub use close::{AliveWork, CloseWork, Closed};
pub use denials::DenialsWork;
pub use message::{MessageKind, MessageWork};
pub use outcome::{OutcomeWork, Refusal};
pub use question::{AnswerWork, WithdrawWork};
pub use refund::RefundWork;
pub use refusal::RefusalWork;
pub use tools::ToolsWork;
pub use writing::{Written, timestamp};
