//! Pages for people, at `/ui`.

pub mod verify;
