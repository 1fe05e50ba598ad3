//! The terminal in raw mode with its alternate screen, and its restoration: at the end, after an error, and after a
//! panic, whose message appears on the restored screen.

use std::io::{self, Stdout, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::termion::raw::{IntoRawMode, RawTerminal};
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen};

use crate::console::Failure;

/// The terminal of the process. Dropping it shows the cursor, leaves the alternate screen and ends raw mode.
pub type Screen = Terminal<TermionBackend<AlternateScreen<RawTerminal<Stdout>>>>;

/// Runs `work` with the terminal, and restores it afterwards.
///
/// # Errors
/// If the terminal cannot be changed.
///
/// # Panics
/// If `work` panics, after the terminal was restored.
pub fn run<T>(work: impl FnOnce(&mut Screen) -> T) -> Result<T, Failure> {
    let output = io::stdout().into_raw_mode()?.into_alternate_screen()?;
    let screen = Terminal::new(TermionBackend::new(output))?;
    Ok(restoring(screen, work, |message| {
        let _ = io::stdout().flush();
        let _ = writeln!(io::stderr(), "{message}");
    }))
}

/// Runs `work` with the screen and drops the screen. The message of a panic goes to `report` only then; the panic
/// continues after it.
fn restoring<S, T>(mut screen: S, work: impl FnOnce(&mut S) -> T, report: impl FnOnce(&str)) -> T {
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let hook = panic::take_hook();
    let kept = messages.clone();
    panic::set_hook(Box::new(move |info| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(|| work(&mut screen)));
    panic::set_hook(hook);
    drop(screen);
    match result {
        Ok(result) => result,
        Err(panicked) => {
            report(&messages.lock().unwrap_or_else(PoisonError::into_inner).join("\n"));
            panic::resume_unwind(panicked)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A screen that notes when it is restored.
    struct NotedScreen(Arc<Mutex<Vec<String>>>);

    impl Drop for NotedScreen {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("restored".to_owned());
        }
    }

    #[test]
    fn after_a_panic_the_screen_is_restored_before_the_message_appears() {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let screen = NotedScreen(notes.clone());
        let reported = notes.clone();
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            restoring::<_, ()>(
                screen,
                |_| panic!("no such row"),
                |message| {
                    reported.lock().unwrap().push(message.to_owned());
                },
            )
        }));
        assert!(panicked.is_err());
        let notes = notes.lock().unwrap();
        assert_eq!(notes[0], "restored");
        assert!(notes[1].contains("no such row"), "{notes:?}");
    }
}
