//! Several servers behind one endpoint: to come.
