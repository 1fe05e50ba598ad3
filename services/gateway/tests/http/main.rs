//! The gateway over real HTTP, in front of a scripted server.
#![allow(clippy::unwrap_used)]

mod a2a;
mod authority;
mod calls;
mod client;
mod front;
mod running;
mod wire;
mod world;
