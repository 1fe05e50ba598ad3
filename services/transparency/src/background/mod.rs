//! Background tasks of a log.

mod eraser;
mod free_space;
pub mod maintenance;
mod permanent;
pub mod readiness;
mod retention;
