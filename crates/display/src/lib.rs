//! Text of statements and COSE headers, as people read them on a terminal or a web page, and as parts of URLs.
//!
//! Not here: colours and tables of the command line (`tabellion`), HTML (`explorer`), and verification.

mod cose;
mod count;
mod json;
mod safe_text;
mod url;

pub use cose::{cbor, header, time};
pub use count::counted;
pub use json::indented_json;
pub use safe_text::{is_plain, safe};
pub use url::percent_encoded;
