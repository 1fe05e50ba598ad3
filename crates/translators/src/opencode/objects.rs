//! The objects of OpenCode's storage, assigned to their sessions and messages.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::database;
use crate::account::{NativeOutcome, TranslationAccount};
use crate::lines;
use crate::native::Native;
use crate::source::{SessionSource, SourceFile};

/// The member for what an export has beside the object of a session or message.
const OTHER_MEMBERS: &str = "export";

/// A session's object without its identifier.
pub(super) struct SessionObject {
    pub id: String,
    pub members: Native,
}

/// A message with its parts, in order.
pub(super) struct Message {
    pub object: Native,
    pub parts: Vec<Native>,
}

/// All objects of a source.
#[derive(Default)]
pub(super) struct Objects {
    pub sessions: Vec<SessionObject>,
    /// Messages by session, in the order of their creation.
    pub messages: BTreeMap<String, Vec<Message>>,
    /// Other objects that name a session, with their native type.
    pub others: BTreeMap<String, Vec<(String, Value)>>,
    /// Other objects, with their native type.
    pub unassigned: Vec<(String, Value)>,
}

/// An object of the storage with what its file's path says about it.
struct Stored {
    /// The first folder of the path, or `object`.
    kind: String,
    /// The last folder of the path: for a part its message, for a message its session.
    folder: Option<String>,
    value: Value,
}

impl Objects {
    /// Reads the objects of a source.
    pub fn read(source: &SessionSource, account: &mut TranslationAccount) -> Objects {
        let stored = match source.files() {
            rows if source.is_rows() => rows.iter().filter_map(|row| in_row(row, account)).collect(),
            [only] => in_one_file(only, account),
            files => files.iter().filter_map(|file| in_tree(file, account)).collect(),
        };
        Sorter::default().sort(stored)
    }

    /// Counts the messages whose session is not in the source.
    pub fn orphans(&mut self, account: &mut TranslationAccount) {
        let reason = NativeOutcome::Skipped("belongs to no session of the source");
        for message in std::mem::take(&mut self.messages).into_values().flatten() {
            account.entry("message", reason);
            message.parts.iter().for_each(|_| account.entry("part", reason));
        }
        for (kind, _) in std::mem::take(&mut self.others).into_values().flatten() {
            account.entry(kind, reason);
        }
    }
}

/// Reads a file of the tree. The folders of the storage are `session/PROJECT`, `message/SESSION` and `part/MESSAGE`.
fn in_tree(file: &SourceFile, account: &mut TranslationAccount) -> Option<Stored> {
    account.total += 1;
    let value = match lines::document(&file.path, file.content(), account) {
        Ok(value) => value,
        Err(reason) => {
            account.broken(&file.path, None, reason);
            return None;
        }
    };
    let steps: Vec<&str> = file.path.split('/').collect();
    let kinds = ["session", "message", "part"];
    let at = steps.iter().position(|step| kinds.contains(step));
    let kind = at.map_or_else(|| (*steps.first().unwrap_or(&"object")).to_owned(), |at| steps[at].to_owned());
    let folder = at.and_then(|at| steps[at + 1..].iter().rev().nth(1)).map(|step| (*step).to_owned());
    Some(Stored { kind, folder, value })
}

/// Reads a row of the database.
fn in_row(row: &SourceFile, account: &mut TranslationAccount) -> Option<Stored> {
    account.total += 1;
    let (table, _) = row.path.split_once('/')?;
    match database::object(row, account) {
        Ok(value) => Some(stored(table, value)),
        Err(reason) => {
            account.broken(&row.path, None, reason);
            None
        }
    }
}

/// Reads objects that follow each other, or an export.
fn in_one_file(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Stored> {
    let mut found = Vec::new();
    for value in lines::documents(file, account) {
        match value {
            value if value.get("info").is_some() && value.get("messages").is_some() => {
                let mut export = Native::of(value).unwrap_or_default();
                let messages = export.take_array("messages");
                found.push(with_info("session", export));
                for message in messages.into_iter().flatten() {
                    account.total += 1;
                    found.extend(exported(message, account));
                }
            }
            value => found.push(stored("object", value)),
        }
    }
    found
}

/// The objects of a message of an export, the parts first.
fn exported(message: Value, account: &mut TranslationAccount) -> Vec<Stored> {
    let mut message = match Native::of(message) {
        Ok(message) => message,
        Err(value) => return vec![stored("object", value)],
    };
    let mut found = Vec::new();
    if let Some(parts) = message.take_array("parts") {
        account.total += parts.len() as u64;
        found.extend(parts.into_iter().map(|part| stored("part", part)));
    }
    found.push(with_info("message", message));
    found
}

/// The object under `info`, with the members beside it as its member [`OTHER_MEMBERS`]; the object around it if that is not
/// possible.
fn with_info(kind: &str, mut around: Native) -> Stored {
    if around.get("info").is_some_and(|info| info.get(OTHER_MEMBERS).is_some()) {
        return stored("object", around.into_value());
    }
    match around.take_object("info") {
        Some(mut info) => {
            info.put_object(OTHER_MEMBERS, around.rest());
            stored(kind, info.into_value())
        }
        None => stored("object", around.into_value()),
    }
}

fn stored(kind: &str, value: Value) -> Stored {
    Stored { kind: kind.to_owned(), folder: None, value }
}

/// Assigns objects to sessions and messages.
#[derive(Default)]
struct Sorter {
    objects: Objects,
    /// Identifiers of the sessions.
    sessions: HashSet<String>,
    /// Messages with their session and creation time.
    messages: Vec<(String, String, u64, Native)>,
    parts: BTreeMap<String, Vec<Native>>,
    /// Parts without a message so far: they belong to the message that follows.
    waiting: Vec<Native>,
}

impl Sorter {
    fn sort(mut self, stored: Vec<Stored>) -> Objects {
        for object in stored {
            self.assign(object);
        }
        self.messages.sort_by_key(|(_, _, created, _)| *created);
        for (session, id, _, object) in self.messages {
            let parts = self.parts.remove(&id).unwrap_or_default();
            self.objects.messages.entry(session).or_default().push(Message { object, parts });
        }
        let lost = self.parts.into_values().flatten().chain(self.waiting);
        self.objects.unassigned.extend(lost.map(|part| ("part".to_owned(), Value::Object(part.rest()))));
        self.objects
    }

    fn assign(&mut self, Stored { kind, folder, value }: Stored) {
        let object = match Native::of(value) {
            Ok(object) => object,
            Err(value) => return self.objects.unassigned.push((kind, value)),
        };
        match shape(&object, &kind) {
            Shape::Session => self.session(kind, object),
            Shape::Message => {
                let session = object.text("sessionID").map(str::to_owned).or(folder).unwrap_or_default();
                let id = object.text("id").unwrap_or_default().to_owned();
                let created = object.get("time").and_then(|time| time.get("created")?.as_u64()).unwrap_or(0);
                self.parts.entry(id.clone()).or_default().append(&mut self.waiting);
                self.messages.push((session, id, created, object));
            }
            Shape::Part => match object.text("messageID").map(str::to_owned).or(folder) {
                Some(message) => self.parts.entry(message).or_default().push(object),
                None => self.waiting.push(object),
            },
            Shape::Other => self.other(kind, object),
        }
    }

    /// Adds a session. A second object of the same session is none of its own: one session is one record.
    fn session(&mut self, kind: String, mut object: Native) {
        let id = object.text("id").unwrap_or_default().to_owned();
        if !self.sessions.insert(id.clone()) {
            return self.objects.others.entry(id).or_default().push((kind, object.into_value()));
        }
        object.take_text("id");
        self.objects.sessions.push(SessionObject { id, members: object });
    }

    fn other(&mut self, kind: String, object: Native) {
        let session = object.text("sessionID").map(str::to_owned);
        let other = (kind, Value::Object(object.rest()));
        match session {
            Some(session) => self.objects.others.entry(session).or_default().push(other),
            None => self.objects.unassigned.push(other),
        }
    }
}

enum Shape {
    Session,
    Message,
    Part,
    Other,
}

/// Returns what an object is: by its folder in the tree, else by its members.
fn shape(object: &Native, kind: &str) -> Shape {
    let has = |name: &str| object.get(name).is_some();
    match kind {
        "session" if has("id") => Shape::Session,
        "message" if has("role") => Shape::Message,
        "part" => Shape::Part,
        "object" if has("role") => Shape::Message,
        "object" if has("messageID") || (has("type") && has("id")) => Shape::Part,
        "object" if has("id") && has("time") && (has("directory") || has("projectID")) => Shape::Session,
        _ => Shape::Other,
    }
}
