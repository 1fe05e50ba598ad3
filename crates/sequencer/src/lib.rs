//! Order, commit, publish: the one place where history could fork.
