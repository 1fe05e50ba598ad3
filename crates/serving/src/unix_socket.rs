//! The Unix socket of an admin listener: accepts commands from the user that runs the service and from root only.
//!
//! The file has mode 0600, and the kernel names the user of the peer process of each connection (`SO_PEERCRED`).

use std::fs::{self, DirBuilder, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use crate::limits::ADMIN_SOCKET_POLL;

/// The user at the other end of a connection, put into each request by the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPeer {
    /// User ID of the peer process.
    pub uid: u32,
}

/// The admin socket of this process; or only its path, while another process of the same log listens there.
pub struct AdminSocket {
    listener: Option<UnixListener>,
    path: PathBuf,
}

impl AdminSocket {
    /// Creates the socket and its folder, and removes the socket file of a crashed process. If another process listens
    /// there, this one takes over once that process has ended.
    ///
    /// # Errors
    /// If a file that is not a socket has this path, or the socket cannot be created.
    pub fn bind(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let listener = match listen(path) {
            Ok(listener) => Some(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let path = path.display();
                tracing::warn!(%path, "another process has the admin socket: it takes the commands for now");
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// If accepting fails; `PermissionDenied` if the peer runs as another user than the service or root.
    pub async fn accept(&mut self) -> Result<(UnixStream, SocketPeer)> {
        let (stream, _) = self.listener().await?.accept().await?;
        let uid = stream.peer_cred()?.uid();
        if uid != 0 && uid != geteuid().as_raw() {
            let why = format!("user {uid} may not command this service");
            return Err(Error::new(ErrorKind::PermissionDenied, why));
        }
        Ok((stream, SocketPeer { uid }))
    }

    /// Waits until no other process listens on the path, trying every [`ADMIN_SOCKET_POLL`].
    async fn listener(&mut self) -> Result<&UnixListener> {
        while self.listener.is_none() {
            match listen(&self.path) {
                Ok(listener) => self.listener = Some(listener),
                Err(error) if error.kind() == ErrorKind::AddrInUse => sleep(ADMIN_SOCKET_POLL).await,
                Err(error) => return Err(error),
            }
        }
        self.listener.as_ref().ok_or_else(|| ErrorKind::NotConnected.into())
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    remove_leftover(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn remove_leftover(path: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "the file is there, and is not a socket"));
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(Error::new(ErrorKind::AddrInUse, "another process listens on this socket"));
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn a_socket_that_a_crash_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/admin.sock");
        drop(AdminSocket::bind(&path).unwrap());
        assert!(!path.exists(), "a stop takes it away");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a killed process leaves it");
        let mut socket = AdminSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (_client, accepted) = tokio::join!(UnixStream::connect(&path), socket.accept());
        assert_eq!(accepted.unwrap().1.uid, geteuid().as_raw());
    }

    #[tokio::test]
    async fn a_second_process_takes_the_place_of_the_first_once_that_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let first = AdminSocket::bind(&path).unwrap();
        let mut second = AdminSocket::bind(&path).unwrap();
        assert!(second.listener.is_none());
        drop(first);
        second.listener().await.unwrap();
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        fs::write(&path, "mine").unwrap();
        assert_eq!(AdminSocket::bind(&path).err().unwrap().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
