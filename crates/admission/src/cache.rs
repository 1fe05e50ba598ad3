//! Verdicts of the judge that may be used again (reading V-29). To come.
