//! The memory under the contract that every keeper is under.

evidence::evidence_store_contract!(memory: || async { evidence::Memory::new("maker") });
