//! The memory store under the contract that every store is under.

store::log_store_contract!(memory: || async { store::Memory::new() });
