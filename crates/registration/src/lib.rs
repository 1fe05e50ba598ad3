//! Profiles and registration policy: an authenticated statement to a decision.
