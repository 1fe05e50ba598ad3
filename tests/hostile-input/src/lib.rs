//! What every parser owes to every input, and inputs that try it.
//!
//! * [`promises`]: one function for each parser. It takes any bytes, and panics when a promise is broken. What agents send
//!   to a gateway has its own module, [`vap`].
//! * [`Parser`]: the parsers by name, each with its promise and its seeds.
//! * [`mutate`]: new inputs out of known ones, by their structure and by their bytes.
//! * [`hunt`]: inputs against a promise until the time is up.
//!
//! Two programs share this: `tests/mutated_input.rs`, on the stable toolchain and in CI, and the
//! targets in `/fuzz`, which a coverage-guided fuzzer runs for as long as somebody lets it.
//!
//! Not here: what a parser must accept or refuse (`vectors`), and signatures.

pub mod hunt;
pub mod mutate;
mod parser;
pub mod promises;
mod seeds;
pub mod vap;

pub use parser::{Parser, Syntax};
