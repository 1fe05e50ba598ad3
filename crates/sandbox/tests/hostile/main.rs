//! Hostile guests: each ends as expected, reaches nothing outside, and leaves the sandbox in order for the next one.

#[cfg(target_os = "linux")]
mod bwrap;
#[cfg(feature = "wasm")]
mod javascript_guests;
#[cfg(target_os = "linux")]
mod python_guests;
mod sandboxes;
mod support;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(feature = "wasm")]
mod wasm;
