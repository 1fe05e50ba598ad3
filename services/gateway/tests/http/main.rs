//! The gateway over real HTTP, in front of a scripted server.
#![allow(clippy::unwrap_used)]

mod a2a;
mod authority;
mod calls;
mod client;
mod front;
mod local;
mod running;
#[path = "../scripted/mod.rs"]
mod scripted;
#[path = "../stored_states/mod.rs"]
mod stored_states;
mod wire;
mod world;

#[test]
fn scripted_server() {
    scripted::serve_if_asked();
}
