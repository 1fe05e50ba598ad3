//! Movements in the list and in an opened entry.

use ratatui::termion::event::Key;

/// A movement, up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// By lines, up if negative.
    Lines(isize),
    /// By screens, up if negative.
    Screens(isize),
}

impl Movement {
    /// Returns the movement of a key; `None` if it has another effect.
    pub fn of(key: Key) -> Option<Self> {
        Some(match key {
            Key::Up | Key::Char('k') => Self::Lines(-1),
            Key::Down | Key::Char('j') => Self::Lines(1),
            Key::PageUp => Self::Screens(-1),
            Key::PageDown | Key::Char(' ') => Self::Screens(1),
            Key::Home | Key::Char('g') => Self::Lines(isize::MIN),
            Key::End | Key::Char('G') => Self::Lines(isize::MAX),
            _ => return None,
        })
    }

    /// Returns the position after the movement, from `position`, on a screen of this height; at most `last`.
    pub fn apply(self, position: usize, height: usize, last: usize) -> usize {
        let lines = match self {
            Self::Lines(lines) => lines,
            Self::Screens(screens) => screens.saturating_mul(isize::try_from(height).unwrap_or(isize::MAX)),
        };
        position.saturating_add_signed(lines).min(last)
    }
}
