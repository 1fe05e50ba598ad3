//! Every admission of a log decided again, from the log alone.
