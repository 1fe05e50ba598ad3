//! What the operator of a route has set. To come.
