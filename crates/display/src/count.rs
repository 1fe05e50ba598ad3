//! Numbers with the noun that they count.

use std::fmt::Display;

/// A number with its noun: `1 entry`, `2 entries`, `0 entries`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, one: &str, several: &str) -> String {
    let noun = if number == N::from(1) { one } else { several };
    format!("{number} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_in_the_singular_and_any_other_number_of_them_in_the_plural() {
        let words = [0_u64, 1, 2, 11].map(|number| counted(number, "leaf", "leaves"));
        assert_eq!(words, ["0 leaves", "1 leaf", "2 leaves", "11 leaves"]);
        assert_eq!(counted(1_usize, "entry", "entries"), "1 entry");
    }
}
