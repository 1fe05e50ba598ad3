//! The gateway's wire: real HTTP, a scripted server behind it that records every byte, and handlers that decide nothing.

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
