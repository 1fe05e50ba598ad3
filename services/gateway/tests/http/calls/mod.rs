//! What is decided, from the request to the answer: a real front over TCP, the real writer, a scripted server behind them and
//! clients of both eras. Each test is named by the reading that it is about.

mod answers;
mod approvals;
mod carriers;
mod changed_tools;
mod crowds;
mod forged;
mod gated;
mod given_up;
mod judged;
mod late;
mod modern_questions;
mod open_questions;
mod operator_commitment;
mod overdue;
mod postures;
mod records;
mod tasks;
mod unlisted_tools;
mod unreachable;
pub mod upstream_questions;
