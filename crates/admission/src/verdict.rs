//! Verdicts. To come.
