//! Request paths of tiles and entry bundles (C2SP tlog-tiles).
//!
//! Each tile has exactly one path: superfluous zeros are rejected, so that a cache cannot be filled with aliases.

use std::{fmt, str::FromStr};

use super::{FULL_WIDTH, MAX_LEVEL, TileId};
use crate::TreeSize;

/// Identifies an entry bundle: the entries whose leaf hashes are in the level-0 tile of the same number and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BundleId {
    number: u64,
    width: u16,
}

impl BundleId {
    /// The bundle as of a tree of this size; `None` if it has no entries there.
    pub fn at(number: u64, size: TreeSize) -> Option<Self> {
        TileId::at(0, number, size).map(Self::of_tile)
    }

    /// The bundle's number, from 0.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// The number of entries: 1 to 256.
    pub const fn width(self) -> u16 {
        self.width
    }

    /// Returns `true` if the bundle has 256 entries and is thus immutable.
    pub const fn is_full(self) -> bool {
        self.width == FULL_WIDTH
    }

    /// Returns `true` if a tree of this size has all entries of the bundle.
    pub fn is_in(self, size: TreeSize) -> bool {
        Self::at(self.number, size).is_some_and(|bundle| self.width <= bundle.width)
    }

    const fn of_tile(tile: TileId) -> Self {
        Self { number: tile.number, width: tile.width }
    }
}

/// A request path below `tile/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TilePath {
    /// A tile: `tile/<level>/<number>`, with `.p/<width>` unless it is full.
    Hashes(TileId),
    /// An entry bundle: `tile/entries/<number>`, with `.p/<width>` unless it is full.
    Entries(BundleId),
}

/// Error: the text is not the path of a tile or an entry bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the path of a tile or an entry bundle")]
pub struct NotATilePath;

impl fmt::Display for TilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, width) = match self {
            Self::Hashes(tile) => {
                write!(f, "tile/{}/", tile.level)?;
                (tile.number, tile.width)
            }
            Self::Entries(bundle) => {
                f.write_str("tile/entries/")?;
                (bundle.number, bundle.width)
            }
        };
        write_number(f, number)?;
        match width {
            FULL_WIDTH => Ok(()),
            partial => write!(f, ".p/{partial}"),
        }
    }
}

/// Parses exactly the output of `Display`.
impl FromStr for TilePath {
    type Err = NotATilePath;

    fn from_str(path: &str) -> Result<Self, NotATilePath> {
        let (kind, rest) =
            path.strip_prefix("tile/").and_then(|path| path.split_once('/')).ok_or(NotATilePath)?;
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => (number, decimal(width, 1..FULL_WIDTH)?),
            None => (rest, FULL_WIDTH),
        };
        let number = read_number(number).ok_or(NotATilePath)?;
        Ok(match kind {
            "entries" => Self::Entries(BundleId { number, width }),
            level => Self::Hashes(TileId {
                level: decimal(level, 0..u16::from(MAX_LEVEL) + 1)? as u8,
                number,
                width,
            }),
        })
    }
}

/// Writes groups of three digits, all but the last prefixed with `x`.
fn write_number(f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
    let (higher, last) = (number / 1000, number % 1000);
    write_higher(f, higher)?;
    write!(f, "{last:03}")
}

fn write_higher(f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
    if number == 0 {
        return Ok(());
    }
    write_higher(f, number / 1000)?;
    write!(f, "x{:03}/", number % 1000)
}

fn read_number(text: &str) -> Option<u64> {
    let (higher, last) = match text.rsplit_once('/') {
        Some((higher, last)) => (Some(higher), last),
        None => (None, text),
    };
    let mut number = 0;
    for group in higher.into_iter().flat_map(|groups| groups.split('/')) {
        number = shift_in(number, group.strip_prefix('x')?)?;
        if number == 0 {
            return None; // a leading group of zeros would be another name for the same number
        }
    }
    shift_in(number, last)
}

fn shift_in(number: u64, group: &str) -> Option<u64> {
    let three_digits = group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let group: u64 = group.parse().ok().filter(|_| three_digits)?;
    number.checked_mul(1000)?.checked_add(group)
}

fn decimal(text: &str, allowed: std::ops::Range<u16>) -> Result<u16, NotATilePath> {
    let number: u16 = text.parse().map_err(|_| NotATilePath)?;
    let canonical = number.to_string() == text;
    match canonical && allowed.contains(&number) {
        true => Ok(number),
        false => Err(NotATilePath),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(level: u8, number: u64, width: u16) -> String {
        TilePath::Hashes(TileId { level, number, width }).to_string()
    }

    #[test]
    fn names_are_those_of_the_specification() {
        assert_eq!(path(0, 5, 256), "tile/0/005");
        assert_eq!(path(1, 1_234_067, 8), "tile/1/x001/x234/067.p/8");
        assert_eq!(path(0, 1000, 255), "tile/0/x001/000.p/255");
        let bundle = BundleId::at(1_234_067, TreeSize::new(1_234_067 * 256 + 9));
        let bundle = TilePath::Entries(bundle.expect("the tree has it"));
        assert_eq!(bundle.to_string(), "tile/entries/x001/x234/067.p/9");
    }

    #[test]
    fn every_name_reads_back() {
        for number in [0, 1, 999, 1000, 123_456, 999_999_999, u64::MAX / 256, u64::MAX] {
            for width in [1, 2, 255, 256] {
                for level in 0..=MAX_LEVEL {
                    let tile = TilePath::Hashes(TileId { level, number, width });
                    assert_eq!(tile.to_string().parse(), Ok(tile));
                }
                let bundle = TilePath::Entries(BundleId { number, width });
                assert_eq!(bundle.to_string().parse(), Ok(bundle));
            }
        }
    }

    #[test]
    fn an_alias_of_a_name_is_refused() {
        for alias in [
            "tile/0/5",
            "tile/0/0005",
            "tile/0/x000/005",
            "tile/00/005",
            "tile/+0/005",
            "tile/0/001/005",
            "tile/0/x001/x005",
            "tile/0/X001/005",
            "tile/0/005.p/256",
            "tile/0/005.p/0",
            "tile/0/005.p/01",
            "tile/0/005.p/",
            "tile/0/005.p/1/",
            "tile/0/005/",
            "/tile/0/005",
            "tile/0/+05",
            "tile/8/005",
            "tile/-1/005",
            "tile/entries/5",
            "tile/data/005",
            "tile//005",
            "tile/0/",
            "tile/0",
            "tile/",
            "",
            "tile/0/x018/x446/x744/x073/x709/x551/616",
        ] {
            assert_eq!(alias.parse::<TilePath>(), Err(NotATilePath), "{alias}");
        }
    }
}
