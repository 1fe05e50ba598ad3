//! The gateway's durable promise: streams, records and the outbox, as one transaction.
