//! The process that runs untrusted work, and the side that starts it.
//!
//! The process with the signing key ([`RunnerProcess`]) starts its own program again (`tabellion vrf run-checks`, a
//! hidden command), which restricts itself ([`restrict()`]), tests its sandboxes, and then serves batches ([`serve()`]). The
//! two exchange lines of JSON over standard input and output:
//!
//! 1. The runner writes its engines: those that passed their self-test, and why others are missing.
//! 2. The signer writes a batch, and the runner writes how each call ended. This is repeated until the signer closes the
//!    pipe. A runner whose signer ends gives up its batch, and ends with its guests ([`end_with_signer`]).
//!
//! Each line has a length limit and is parsed strictly; the signer parses nothing else that comes from a guest. The
//! signer compares the outcomes with what is expected, so that neither a guest nor the runner knows it. A runner that
//! breaks the protocol or does not answer in time is killed, with its guests.
//!
//! Not here: the checks (the `checks` crate), and the sandboxes.

mod hang_up;
mod limits;
mod line;
mod process;
mod restrict;
mod serve;
mod wire;

pub use hang_up::end_with_signer;
pub use process::{RunnerProcess, StartError};
pub use restrict::{RestrictError, restrict};
pub use serve::{ServeError, serve};
