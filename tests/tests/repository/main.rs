//! The repository itself: its structure, documents, dependencies and recorded costs.
#![allow(clippy::unwrap_used)]

mod api_description;
mod architecture;
mod checked_in;
mod docs;
mod errors;
mod exposition;
mod fault_matrix;
mod metrics;
mod modules;
mod readme;
mod site;
mod speed_gates;
mod supply_chain;
mod workspace;
