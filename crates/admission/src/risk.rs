//! The risk score of a call. To come.
