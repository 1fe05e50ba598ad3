//! One name space for the names of several servers: the mapping between a server's own names and those that the client
//! sees.
//!
//! | kind | name that the client sees |
//! |---|---|
//! | tools, prompts, tasks | `server__name`; the separator is configurable |
//! | resources | `server+uri`, which is again a URI: a scheme may contain letters, digits, `+`, `-` and `.` |
//! | ids and progress tokens of requests that servers send | `"server:" +` the raw JSON of the id, with its type |
//! | event ids | `server:id`; on a stream of several servers, the positions of all of them |
//! | cursors | the cursors of all servers that have more |
//!
//! The mapping needs no stored state: each name that a client sends contains the name of its server.

use data_encoding::BASE64URL_NOPAD;
use thiserror::Error;

use crate::limits;
use crate::upstream::text::{Id, Json, quoted};

/// Index of a server in the list of servers.
pub type ServerIndex = usize;

/// The servers' names, and the separator between a server's name and another name.
#[derive(Clone, Debug)]
pub struct ServerNames {
    servers: Vec<String>,
    separator: String,
}

/// Reason why a server's name or the separator is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadName {
    /// The name could not be the beginning of a URI scheme.
    #[error("{0:?} is not a name for a server: it is letters, digits and hyphens, a letter first")]
    Unsound(String),
    /// The name contains the separator, so that its end would be ambiguous.
    #[error("{0:?} is not a name for a server: it holds the separator {1:?}")]
    HoldsSeparator(String, String),
    /// The names of two servers are equal, ignoring case: URI schemes are case-insensitive.
    #[error("two servers are named {0:?}")]
    Twice(String),
    /// The separator is empty, or has characters that a name may not have.
    #[error("the separator is empty, or has a character that names may not have")]
    Separator,
}

impl ServerNames {
    /// Checks the names of the servers and the separator.
    ///
    /// # Errors
    /// A [`BadName`] if a name is unsuitable, or two names are equal.
    pub fn new(servers: Vec<String>, separator: &str) -> Result<Self, BadName> {
        let in_names = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if separator.is_empty() || !separator.chars().all(in_names) {
            return Err(BadName::Separator);
        }
        for (at, name) in servers.iter().enumerate() {
            let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if !letters || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(BadName::Unsound(name.clone()));
            }
            if name.contains(separator) {
                return Err(BadName::HoldsSeparator(name.clone(), separator.to_owned()));
            }
            if servers[..at].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(BadName::Twice(name.clone()));
            }
        }
        Ok(Self { servers, separator: separator.to_owned() })
    }

    /// The number of servers.
    pub const fn len(&self) -> usize {
        self.servers.len()
    }

    /// The name of a server.
    pub fn name_of(&self, server: ServerIndex) -> &str {
        &self.servers[server]
    }

    fn find(&self, name: &str) -> Option<ServerIndex> {
        self.servers.iter().position(|server| server == name)
    }

    /// The name of a tool, prompt or task as the client sees it.
    pub fn outside(&self, server: ServerIndex, name: &str) -> String {
        [self.name_of(server), &self.separator, name].concat()
    }

    /// The server of a tool, prompt or task, and the name there. `None` if the prefix names no server.
    pub fn inside<'a>(&self, name: &'a str) -> Option<(ServerIndex, &'a str)> {
        let (server, rest) = name.split_once(&self.separator)?;
        Some((self.find(server)?, rest))
    }

    /// The URI of a resource as the client sees it.
    pub fn uri_outside(&self, server: ServerIndex, uri: &str) -> String {
        format!("{}+{uri}", self.name_of(server).to_ascii_lowercase())
    }

    /// The server of a resource, and the URI there. The comparison ignores case, because clients may change the case of
    /// the scheme.
    pub fn uri_inside<'a>(&self, uri: &'a str) -> Option<(ServerIndex, &'a str)> {
        let (server, rest) = uri.split_once('+')?;
        Some((self.servers.iter().position(|name| name.eq_ignore_ascii_case(server))?, rest))
    }

    /// The id or progress token of a server's request as the client sees it, as JSON text.
    pub fn id_outside(&self, server: ServerIndex, id: Json<'_>) -> String {
        quoted(&format!("{}:{}", self.name_of(server), id.raw()))
    }

    /// The server that sent the request with this id, and the raw JSON of the id there.
    pub fn id_inside(&self, id: Json<'_>) -> Option<(ServerIndex, String)> {
        let text = id.string()?;
        let (server, raw) = text.split_once(':')?;
        Id::read(Json::whole(raw)?)?;
        Some((self.find(server)?, raw.to_owned()))
    }

    /// The id of an event on a stream of one server.
    pub fn event_outside(&self, server: ServerIndex, id: &str) -> String {
        format!("{}:{id}", self.name_of(server))
    }

    /// The id of an event on a stream of several servers: it packs the position of each of them.
    pub fn place_outside(&self, places: &[Option<String>]) -> String {
        format!("*:{}", self.packed(places))
    }

    /// The position that an event id from the client denotes; `None` if the id is not one of ours.
    pub fn event_inside(&self, id: &str) -> Option<ResumePosition> {
        match id.split_once(':')? {
            ("*", places) => self.unpacked(places).map(ResumePosition::All),
            (server, id) => Some(ResumePosition::One(self.find(server)?, id.to_owned())),
        }
    }

    /// The client's cursor: it packs the cursor of each server that has more.
    pub fn cursor_outside(&self, cursors: &[Option<String>]) -> String {
        self.packed(cursors)
    }

    /// Unpacks the cursor of each server that has more. `None` if the cursor is not one of ours, or no server has more.
    pub fn cursor_inside(&self, cursor: &str) -> Option<Vec<Option<String>>> {
        let cursors = self.unpacked(cursor)?;
        cursors.iter().any(Option::is_some).then_some(cursors)
    }

    fn packed(&self, texts: &[Option<String>]) -> String {
        let named = self.servers.iter().zip(texts).filter_map(|(name, text)| Some((name, text.as_ref()?)));
        BASE64URL_NOPAD.encode(serde_json::json!(named.collect::<Vec<_>>()).to_string().as_bytes())
    }

    fn unpacked(&self, text: &str) -> Option<Vec<Option<String>>> {
        if text.len() > limits::MAX_PACKED_BYTES {
            return None;
        }
        let json = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let named: Vec<(String, String)> = jose::json::read_bytes(&json).ok()?;
        let mut texts = vec![None; self.len()];
        for (name, text) in named {
            texts[self.find(&name)?] = Some(text);
        }
        Some(texts)
    }
}

/// The position at which a stream is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumePosition {
    /// An event id of one server's stream.
    One(ServerIndex, String),
    /// The common stream: each server's last event id, if that server sent one.
    All(Vec<Option<String>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ServerNames {
        ServerNames::new(vec!["git".into(), "time".into()], ".").unwrap()
    }

    #[test]
    fn a_name_is_cut_at_the_first_separator() {
        assert_eq!(names().inside("git.log.all"), Some((0, "log.all")));
        assert_eq!(names().inside("svn.log"), None);
        assert_eq!(names().inside("git"), None);
        assert_eq!(names().inside("gitlog"), None);
    }

    #[test]
    fn servers_that_cannot_be_told_apart_are_refused() {
        let new = |servers: &[&str], separator| {
            ServerNames::new(servers.iter().map(|name| (*name).to_owned()).collect(), separator).unwrap_err()
        };
        assert_eq!(new(&["a-b"], "-"), BadName::HoldsSeparator("a-b".into(), "-".into()));
        assert_eq!(new(&["a.b"], "."), BadName::Unsound("a.b".into()));
        assert_eq!(new(&["7up"], "."), BadName::Unsound("7up".into()));
        assert_eq!(new(&["a", "A"], "."), BadName::Twice("A".into()));
        assert_eq!(new(&["a"], ""), BadName::Separator);
        assert_eq!(new(&["a"], ":"), BadName::Separator);
    }

    #[test]
    fn an_id_comes_back_as_it_was_written() {
        let names = names();
        for id in ["0", "\"0\"", "1e2", "\"a:b\\u0041\"", "9007199254740993"] {
            let outside = names.id_outside(1, Json::whole(id).unwrap());
            assert_eq!(names.id_inside(Json::whole(&outside).unwrap()), Some((1, id.to_owned())));
        }
        for forged in ["7", "\"time\"", "\"svn:7\"", "\"time:7,\\\"x\\\":1\"", "\"time:{}\""] {
            assert_eq!(names.id_inside(Json::whole(forged).unwrap()), None, "{forged}");
        }
    }

    #[test]
    fn a_resource_of_a_server_is_a_uri_in_any_case() {
        let names = names();
        assert_eq!(names.uri_outside(0, "file:///a+b"), "git+file:///a+b");
        assert_eq!(names.uri_inside("GIT+file:///a+b"), Some((0, "file:///a+b")));
    }

    #[test]
    fn a_cursor_that_is_none_of_ours_is_refused() {
        let names = names();
        let cursors = [None, Some("x".to_owned())];
        assert_eq!(names.cursor_inside(&names.cursor_outside(&cursors)).unwrap(), cursors);
        let other = ServerNames::new(vec!["svn".into(), "x".into()], ".").unwrap();
        let long = "A".repeat(limits::MAX_PACKED_BYTES + 1);
        for cursor in
            ["", "more", &other.cursor_outside(&cursors), &names.cursor_outside(&[None, None]), &long]
        {
            assert_eq!(names.cursor_inside(cursor), None, "{cursor}");
        }
    }

    #[test]
    fn a_place_says_where_one_server_was_or_all_of_them() {
        let names = names();
        let one = ResumePosition::One(0, "a:b".into());
        assert_eq!(names.event_inside(&names.event_outside(0, "a:b")), Some(one));
        let all = vec![None, Some("7".to_owned())];
        assert_eq!(names.event_inside(&names.place_outside(&all)), Some(ResumePosition::All(all)));
        assert_eq!(names.event_inside("svn:1"), None);
    }
}
