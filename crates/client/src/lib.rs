//! SCRAPI over HTTP; returns nothing that the verifier has not passed.
