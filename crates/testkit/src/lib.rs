//! Clocks, keys and statement builders for tests.
