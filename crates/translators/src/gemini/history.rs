//! The messages of a Gemini session, restored from a document, or from lines of changes and documents that follow each other.
//!
//! A message with the identifier of an earlier one replaces it, since it is the same message with more content.
//! Messages that a `$rewindTo` or `$set.messages` removes from the chat did happen, so they stay in the record,
//! marked as withdrawn.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::message;
use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::Entry;
use crate::native::Native;

/// A session's metadata and what happened in it, in order.
#[derive(Default)]
pub(super) struct History {
    /// Members of the session other than its messages.
    pub head: Native,
    pub items: Vec<Item>,
    /// Sessions other than that of the head which the file describes.
    pub other_sessions: BTreeSet<String>,
    /// Places of the messages that the chat shows, in its order.
    visible: Vec<usize>,
    /// Place of each message by its identifier.
    places: HashMap<String, usize>,
}

/// Something that happened in a session.
pub(super) enum Item {
    /// A message; `withdrawn` is why the chat does not show it any more.
    Message { message: Native, withdrawn: Option<&'static str> },
    /// Any other change; `unmapped` are the other members of the line.
    Event { kind: &'static str, data: Map<String, Value>, unmapped: Native },
}

impl Item {
    pub fn message(&self) -> Option<&Native> {
        match self {
            Item::Message { message, .. } => Some(message),
            Item::Event { .. } => None,
        }
    }

    /// Makes the entry, and counts the message; `None` if the message `is_repeated`.
    pub fn entry(self, is_repeated: bool, account: &mut TranslationAccount) -> Option<Entry> {
        Some(match self {
            Item::Message { message, withdrawn } => {
                let kind = message.text("type").unwrap_or("untyped").to_owned();
                if is_repeated {
                    account.entry(kind, NativeOutcome::Skipped("repeats the results of tool calls"));
                    return None;
                }
                let entry = message::entry(message, account).with("withdrawn", withdrawn);
                account.entry(kind, NativeOutcome::Kept(entry.kind()));
                entry
            }
            Item::Event { kind, data, unmapped } => Entry::event(kind, data).native(unmapped),
        })
    }
}

impl History {
    /// Restores the session of a document.
    pub fn of_document(mut document: Native, account: &mut TranslationAccount) -> History {
        let messages = document.take_array("messages").unwrap_or_default();
        let mut history = History { head: document, ..History::default() };
        history.add_messages(messages, account);
        history
    }

    /// Restores the session of texts that follow each other: lines of changes, or documents.
    pub fn of_texts(texts: Vec<Value>, account: &mut TranslationAccount) -> History {
        let mut history = History::default();
        for text in texts {
            history.apply(text, account);
        }
        history
    }

    fn apply(&mut self, text: Value, account: &mut TranslationAccount) {
        let mut line = match Native::of(text) {
            Ok(line) => line,
            Err(value) => return self.add_message(value, account),
        };
        if let Some(changes) = line.take_object("$set") {
            self.set(changes, line, account);
        } else if let Some(target) = line.take_text("$rewindTo") {
            self.rewind(&target);
            account.entry("$rewindTo", NativeOutcome::Kept("system-event"));
            let data = Map::from_iter([("to".into(), target.into())]);
            self.items.push(Item::Event { kind: "rewind", data, unmapped: line });
        } else if line.get("sessionId").is_some() && line.get("type").is_none() {
            self.describe(line, account);
        } else {
            self.add_message(line.into_value(), account);
        }
    }

    /// Handles a line with metadata, or a document, which has messages too.
    fn describe(&mut self, mut metadata: Native, account: &mut TranslationAccount) {
        let messages = metadata.take_array("messages").unwrap_or_default();
        self.add_metadata(metadata, account);
        self.add_messages(messages, account);
    }

    /// Adds metadata. The session of the first ones stays; what describes another one is an event.
    fn add_metadata(&mut self, metadata: Native, account: &mut TranslationAccount) {
        let is_known = |known: &str| metadata.text("sessionId") == Some(known);
        if self.head.text("sessionId").is_none_or(is_known) {
            account.entry("metadata", NativeOutcome::Kept("session"));
            return self.head.extend(metadata);
        }
        account.entry("metadata", NativeOutcome::Kept("system-event"));
        self.other_sessions.extend(metadata.text("sessionId").map(str::to_owned));
        let (data, unmapped) = (metadata.rest(), Native::default());
        self.items.push(Item::Event { kind: "metadata", data, unmapped });
    }

    fn set(&mut self, mut changes: Native, unmapped: Native, account: &mut TranslationAccount) {
        account.entry("$set", NativeOutcome::Kept("session"));
        if let Some(messages) = changes.take_array("messages") {
            self.withdraw(0, "replaced");
            self.add_messages(messages, account);
        }
        self.head.extend(changes);
        if !unmapped.is_empty() {
            self.items.push(Item::Event { kind: "set", data: Map::new(), unmapped });
        }
    }

    fn add_messages(&mut self, messages: Vec<Value>, account: &mut TranslationAccount) {
        for message in messages {
            account.total += 1;
            self.add_message(message, account);
        }
    }

    fn add_message(&mut self, message: Value, account: &mut TranslationAccount) {
        let message = match Native::of(message) {
            Ok(message) => message,
            Err(value) => {
                account.entry("non-object", NativeOutcome::Kept("system-event"));
                let data = Map::from_iter([("value".to_owned(), value)]);
                let unmapped = Native::default();
                return self.items.push(Item::Event { kind: "non-object", data, unmapped });
            }
        };
        let known = message.text("id").and_then(|id| self.places.get(id).copied());
        match known {
            Some(place) => self.replace(place, message, account),
            None => self.append(message),
        }
    }

    fn append(&mut self, message: Native) {
        let place = self.items.len();
        if let Some(id) = message.text("id") {
            self.places.insert(id.to_owned(), place);
        }
        self.items.push(Item::Message { message, withdrawn: None });
        self.visible.push(place);
    }

    fn replace(&mut self, place: usize, message: Native, account: &mut TranslationAccount) {
        let old = std::mem::replace(&mut self.items[place], Item::Message { message, withdrawn: None });
        if let Item::Message { message, withdrawn } = old {
            let kind = message.text("type").unwrap_or("untyped").to_owned();
            account.entry(kind, NativeOutcome::Skipped("replaced by a later form of the message"));
            if withdrawn.is_some() {
                self.visible.push(place);
            }
        }
    }

    /// Withdraws the message with this identifier and all later ones; all messages if the chat does not show it.
    fn rewind(&mut self, target: &str) {
        let place = self.places.get(target);
        let is_visible = |place: &usize| matches!(self.items[*place], Item::Message { withdrawn: None, .. });
        let visible = place.filter(|place| is_visible(place));
        let first = visible.and_then(|place| self.visible.iter().rposition(|visible| visible == place));
        self.withdraw(first.unwrap_or(0), "rewind");
    }

    /// Withdraws the messages that the chat shows from this position on.
    fn withdraw(&mut self, from: usize, reason: &'static str) {
        for place in self.visible.drain(from..) {
            if let Item::Message { withdrawn, .. } = &mut self.items[place] {
                *withdrawn = Some(reason);
            }
        }
    }
}
