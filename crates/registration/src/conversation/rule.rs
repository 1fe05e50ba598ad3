//! The rules of a conversation record, each citing our reading: the table in [`conversation`](crate::conversation).
//!
//! Sections are those of draft-birkholz-verifiable-agent-conversations-00.

crate::rule::rules! {
    /// A rule of a conversation record.
    ConversationRule {
        /// The payload's first byte is `{` for JSON or begins a CBOR map; blanks and a byte order mark are neither.
        Form = "conversation-form", reading "C-6", section "1";
        /// Tag 4149 around a CBOR record is taken only where the policy says so.
        Tag = "conversation-tag-4149", reading "D8", section "6.3";
        /// A JSON record is one JSON text and nothing follows it.
        Json = "conversation-json", reading "1.6-5", section "3";
        /// A CBOR record is one well-formed data item and nothing follows it.
        Cbor = "conversation-cbor", reading "1.6-5", section "3";
        /// All text is UTF-8.
        Utf8 = "conversation-utf-8", reading "1.6-5", section "3";
        /// No string of a JSON record holds half a surrogate pair.
        LoneSurrogate = "conversation-lone-surrogate", reading "1.6-5", section "3";
        /// No map has two members of one name, or two equal keys, at any depth.
        DuplicateMember = "conversation-duplicate-member", reading "1.6-5", section "3";
        /// Arrays and maps nest 64 deep at most. A level of `children` is counted by its own rule and not here.
        Nesting = "conversation-nesting", reading "1.6-5", section "3";
        /// A record has no more than about a million data items.
        Items = "conversation-items", reading "C-8", section "3";
        /// No number is NaN or infinite.
        Number = "conversation-number", reading "1.6-5", section "3";
        /// Integers lie within -2^63 … 2^64 - 1; bignums are none.
        Integer = "conversation-integer", reading "1.6-5", section "3";
        /// Every member that the CDDL requires is there.
        Member = "conversation-member", reading "D7", section "3.2";
        /// A member that the CDDL names has the type it says.
        Type = "conversation-type", reading "D7", section "3.2";
        /// The keys of the CDDL's maps are text.
        MemberName = "conversation-member-name", reading "D7", section "3.2";
        /// An entry's `type` is user, assistant, tool-call, tool-result, reasoning or system-event.
        EntryType = "conversation-entry-type", reading "D7", section "3.8";
        /// A `children` list stands at most 32 levels below `entries`.
        ChildrenDepth = "conversation-children-depth", reading "C-8", section "3.8";
        /// A textual time has the form of RFC 3339. Whether there was such a day is a warning.
        Timestamp = "conversation-timestamp", reading "D5", section "3.1";
        /// A numeric time counts milliseconds: one below 10^11 can only have been meant as seconds.
        EpochMilliseconds = "conversation-epoch-milliseconds", reading "C-1", section "3.1";
        /// `session-id` is text, or a byte string in a CBOR record.
        SessionId = "conversation-session-id", reading "D10", section "3.1";
        /// A contributor is human, ai, mixed or unknown.
        ContributorType = "conversation-contributor-type", reading "D9", section "3.10";
        /// The maps of `file-attribution`, and trace-metadata, have no members but those of the CDDL.
        ClosedMap = "conversation-closed-map", reading "D11", section "3.10";
        /// Trace-metadata is the map that the CDDL describes.
        TraceMetadata = "conversation-trace-metadata", reading "C-4", section "3.11.2";
        /// Trace-metadata names no native format: what is signed here is a record.
        TraceFormat = "conversation-trace-format", reading "1.5", section "3.11.2";
        /// Trace-metadata's hash, made with SHA-256, is that of the payload's bytes.
        TraceContentHash = "conversation-trace-content-hash", reading "C-7", section "3.11.2";
        /// Trace-metadata's `session-id` is the record's.
        TraceSessionId = "conversation-trace-session-id", reading "C-4", section "3.11.2";
        /// Trace-metadata's `agent-vendor` is the record's `model-provider`.
        TraceAgentVendor = "conversation-trace-agent-vendor", reading "C-4", section "3.11.2";
        /// Trace-metadata's times are the record's `session-start` and `session-end`, where it has them.
        TraceTimestamp = "conversation-trace-timestamp", reading "C-4", section "3.11.2";
        /// No two entries have one `id`.
        EntryIdUnique = "conversation-entry-id-unique", reading "1.6-9", section "3.1";
        /// An attributed path is relative and not empty, without `..`, NUL and backslash.
        AttributionPath = "conversation-attribution-path", reading "1.6-9", section "3.10";
        /// Lines count from 1, and a range does not end before it starts.
        LineRange = "conversation-line-range", reading "1.6-9", section "3.10";
        /// A range's hash has as many hex digits as its algorithm gives; without one it is SHA-256.
        HashLength = "conversation-hash-length", reading "1.6-9", section "3.10";
        /// `version` is one that the policy takes: 3.* unless it says otherwise.
        Version = "conversation-version", reading "1.5", section "3.2";
    }
}
