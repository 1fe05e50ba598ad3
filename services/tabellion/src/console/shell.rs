//! Words of a command as text for a shell.

use std::path::Path;

/// Joins words to a command that a POSIX shell splits into the same words.
pub fn join(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// Returns a path as a word that a POSIX shell reads as this path, and a command as no flag.
pub fn path(path: &Path) -> String {
    let text = path.display().to_string();
    match text.starts_with('-') {
        true => quote(&format!("./{text}")),
        false => quote(&text),
    }
}

/// Returns a word as a POSIX shell reads it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_splits_the_command_into_the_same_words() {
        let words = ["plain", "two words", "it's", "$HOME `x` \"y\"", "", "*"].map(str::to_owned);
        let script = format!("for word in {}; do echo \"<$word>\"; done", join(&words));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let expected: String = words.iter().map(|word| format!("<{word}>\n")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }

    #[test]
    fn a_path_is_no_flag() {
        let words = ["plain/file.cose", "-rf", "-it's"].map(|text| path(Path::new(text)));
        assert_eq!(words, ["plain/file.cose", "./-rf", r"'./-it'\''s'"]);
    }
}
