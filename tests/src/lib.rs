//! Black-box tests: conformance, journeys, crashes, architecture.
