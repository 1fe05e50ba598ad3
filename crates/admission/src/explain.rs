//! Reasons in words for a human. To come.
