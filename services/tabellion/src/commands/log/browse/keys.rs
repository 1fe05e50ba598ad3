//! Keys that are pressed at the terminal. A thread waits for them, because reading from a terminal blocks.

use std::io;

use ratatui::termion::event::Key;
use ratatui::termion::input::TermRead;
use tokio::sync::mpsc::{Receiver, channel};

/// Maximum number of keys that wait until the browser takes them.
const WAITING_KEYS: usize = 64;

/// Returns the keys of standard input; the channel ends when the terminal is gone. The thread ends with the process.
pub fn listen() -> Receiver<Key> {
    let (pressed, keys) = channel(WAITING_KEYS);
    std::thread::spawn(move || {
        for key in io::stdin().keys() {
            let Ok(key) = key else { return };
            if pressed.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}
