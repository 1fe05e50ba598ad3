//! SEP-2817. To come.
