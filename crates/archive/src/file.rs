//! A file that is there whole, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is added to the name while the file is not whole.
const SUFFIX: &str = ".partial";

/// A file that is written aside, for nobody else to read, and takes its name once it is durable.
#[derive(Debug)]
pub struct Aside {
    file: File,
    aside: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl Aside {
    /// Begins a file of this name. One that is there stays as it is: that is an error.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"));
        }
        let mut aside = path.as_os_str().to_owned();
        aside.push(SUFFIX);
        let aside = PathBuf::from(aside);
        // What a crash left behind is of no use to anybody.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.try_lock().map_err(|_| io::Error::other("another process is writing it"))?;
        Ok(Self { file, aside, path: path.to_owned(), kept: false })
    }

    /// Where to write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable under its name.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // Unlike a rename, a link never takes the place of a file that came meanwhile.
        fs::hard_link(&self.aside, &self.path)?;
        self.kept = true;
        fs::remove_file(&self.aside)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.aside);
        }
    }
}
