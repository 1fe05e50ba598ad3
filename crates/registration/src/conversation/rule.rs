//! Rules of conversation records. Each cites its reading in the table of [`conversation`](crate::conversation).
//!
//! Sections are those of draft-birkholz-verifiable-agent-conversations-00.

crate::rule::rules! {
    /// Rules of a conversation record.
    ConversationRule {
        /// The payload's first byte is `{` for JSON or the head of a CBOR map; blanks and a byte order mark may not
        /// precede it.
        Form = "conversation-form", reading "C-6", section "1";
        /// A CBOR record has tag 4149 only if the policy admits it.
        Tag = "conversation-tag-4149", reading "D8", section "6.3";
        /// A JSON record is one JSON text without trailing data.
        Json = "conversation-json", reading "1.6-5", section "3";
        /// A CBOR record is one well-formed data item without trailing data.
        Cbor = "conversation-cbor", reading "1.6-5", section "3";
        /// All text is UTF-8.
        Utf8 = "conversation-utf-8", reading "1.6-5", section "3";
        /// No string of a JSON record contains an unpaired surrogate.
        LoneSurrogate = "conversation-lone-surrogate", reading "1.6-5", section "3";
        /// No map has two members of one name, or two equal keys, at any depth.
        DuplicateMember = "conversation-duplicate-member", reading "1.6-5", section "3";
        /// Arrays and maps nest at most 64 deep. Levels of `children` have their own rule and do not count.
        Nesting = "conversation-nesting", reading "1.6-5", section "3";
        /// A record has at most 2^20 data items.
        Items = "conversation-items", reading "C-8", section "3";
        /// No number is NaN or infinite.
        Number = "conversation-number", reading "1.6-5", section "3";
        /// Integers are in the range -2^63 … 2^64 - 1; bignums are not allowed.
        Integer = "conversation-integer", reading "1.6-5", section "3";
        /// Every member that the CDDL requires is present.
        Member = "conversation-member", reading "D7", section "3.2";
        /// Every member that the CDDL names has the type in the CDDL.
        Type = "conversation-type", reading "D7", section "3.2";
        /// The keys of the CDDL's maps are text.
        MemberName = "conversation-member-name", reading "D7", section "3.2";
        /// An entry's `type` is user, assistant, tool-call, tool-result, reasoning or system-event.
        EntryType = "conversation-entry-type", reading "D7", section "3.8";
        /// Lists of `children` nest at most 32 levels below `entries`.
        ChildrenDepth = "conversation-children-depth", reading "C-8", section "3.8";
        /// A textual time has the form of RFC 3339. A date that does not exist is a warning.
        Timestamp = "conversation-timestamp", reading "D5", section "3.1";
        /// A numeric time counts milliseconds: a value below 10^11 was probably meant as seconds.
        EpochMilliseconds = "conversation-epoch-milliseconds", reading "C-1", section "3.1";
        /// `session-id` is text, or a byte string in a CBOR record.
        SessionId = "conversation-session-id", reading "D10", section "3.1";
        /// A contributor is human, ai, mixed or unknown.
        ContributorType = "conversation-contributor-type", reading "D9", section "3.10";
        /// The maps of `file-attribution`, and trace-metadata, have only the members in the CDDL.
        ClosedMap = "conversation-closed-map", reading "D11", section "3.10";
        /// Trace-metadata is the map that the CDDL describes.
        TraceMetadata = "conversation-trace-metadata", reading "C-4", section "3.11.2";
        /// Trace-metadata does not name a native session format, because the payload is a record.
        TraceFormat = "conversation-trace-format", reading "1.5", section "3.11.2";
        /// The hash in trace-metadata is that of the payload's bytes; without an algorithm it is SHA-256.
        TraceContentHash = "conversation-trace-content-hash", reading "C-7", section "3.11.2";
        /// Trace-metadata's `session-id` is the record's.
        TraceSessionId = "conversation-trace-session-id", reading "C-4", section "3.11.2";
        /// Trace-metadata's `agent-vendor` is the record's `model-provider`.
        TraceAgentVendor = "conversation-trace-agent-vendor", reading "C-4", section "3.11.2";
        /// The times in trace-metadata equal the record's `session-start` and `session-end`, if present.
        TraceTimestamp = "conversation-trace-timestamp", reading "C-4", section "3.11.2";
        /// All entries have different `id`s.
        EntryIdUnique = "conversation-entry-id-unique", reading "1.6-9", section "3.1";
        /// An attributed path is relative and not empty, without `..`, NUL or backslash.
        AttributionPath = "conversation-attribution-path", reading "1.6-9", section "3.10";
        /// Lines count from 1, and a range does not end before it starts.
        LineRange = "conversation-line-range", reading "1.6-9", section "3.10";
        /// A range's hash has as many hexadecimal digits as its algorithm produces; without an algorithm it is SHA-256.
        HashLength = "conversation-hash-length", reading "1.6-9", section "3.10";
        /// `version` has a prefix that the policy admits; by default 3.*.
        Version = "conversation-version", reading "1.5", section "3.2";
    }
}
