//! The gateway's wire: real HTTP, a scripted server behind it that records every byte, and somebody who decides nothing.
#![allow(clippy::unwrap_used)]

mod asked;
mod doors;
mod hostile;
mod leaving;
mod owners;
mod stop;
mod streams;
mod stripped;
mod transparency;
mod unreachable;
mod world;
