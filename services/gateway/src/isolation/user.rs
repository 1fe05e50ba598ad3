//! The user that runs a server.

use std::path::PathBuf;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name in the configuration.
    pub name: String,
    /// The user id.
    pub uid: u32,
    /// The primary group id; the process gets no other groups.
    pub gid: u32,
    /// The home folder, if the user is in `/etc/passwd`.
    pub home: Option<PathBuf>,
}

impl User {
    /// Reads `name` (looked up in `/etc/passwd`) or `UID:GID`.
    ///
    /// # Errors
    /// A description, if there is no such user, or the user or group is root.
    pub fn read(text: &str) -> Result<Self, String> {
        let listed = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::of(text, &listed)
    }

    fn of(text: &str, listed: &str) -> Result<Self, String> {
        let numbers =
            text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let user = match numbers {
            Some((uid, gid)) => Some(Self { name: text.to_owned(), uid, gid, home: None }),
            None => listed.lines().find_map(|line| listed_as(line, text)),
        };
        match user {
            Some(user) if user.uid == 0 || user.gid == 0 => Err("a server is not given to root".to_owned()),
            Some(user) => Ok(user),
            None => {
                Err(format!("{text} is not in /etc/passwd; UID:GID names a user that is listed elsewhere"))
            }
        }
    }
}

/// The user of a line of `/etc/passwd`, if it has this name.
fn listed_as(line: &str, name: &str) -> Option<User> {
    let fields: Vec<&str> = line.split(':').collect();
    let [listed, _, uid, gid, _, home, _] = fields[..] else { return None };
    if listed != name {
        return None;
    }
    Some(User {
        name: name.to_owned(),
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        home: Some(home.into()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const LISTED: &str = "root:x:0:0:root:/root:/bin/bash\nmcp:x:990:991::/var/lib/mcp:/usr/sbin/nologin\n";

    #[test]
    fn a_user_is_named_or_numbered() {
        let named = User::of("mcp", LISTED).unwrap();
        assert_eq!((named.uid, named.gid, named.home), (990, 991, Some("/var/lib/mcp".into())));
        let numbered = User::of("1200:1300", LISTED).unwrap();
        assert_eq!((numbered.uid, numbered.gid, numbered.home), (1200, 1300, None));
    }

    #[test]
    fn root_and_unknown_users_are_refused() {
        for text in ["root", "0:0", "0:991", "990:0"] {
            assert!(User::of(text, LISTED).unwrap_err().contains("root"), "{text}");
        }
        for text in ["nobody-here", "", "990", "x:y", "mcp:"] {
            assert!(User::of(text, LISTED).unwrap_err().contains("/etc/passwd"), "{text}");
        }
    }
}
