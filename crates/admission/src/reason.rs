//! Reasons. To come.
