//! What was decided, as the bytes that go to the log. To come.
