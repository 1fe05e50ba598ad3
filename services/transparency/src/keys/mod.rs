//! The log's keys: private key files, the signer, and checks of recorded keys.

pub mod key_files;
pub mod recorded;
pub mod signer;
