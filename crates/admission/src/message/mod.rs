//! What an agent sends. To come.
