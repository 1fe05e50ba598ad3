//! Statement, Receipts and trust anchors to a verdict, offline.
