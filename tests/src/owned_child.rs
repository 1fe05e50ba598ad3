//! [`OwnedChild`]: a child process that ends with the test.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A child process, killed on drop.
#[derive(Debug)]
pub struct OwnedChild(pub Child);

impl Deref for OwnedChild {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for OwnedChild {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
