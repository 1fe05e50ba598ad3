//! Who calls. To come.
