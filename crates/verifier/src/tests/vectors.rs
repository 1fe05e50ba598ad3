//! Golden cases that any implementation can read.
