//! The SCITT transparency service: SCRAPI over HTTP.
