//! The program that Codex notifies (`notify` in `config.toml`): edits that leave everything else as it was written.
//!
//! Codex has one `notify`. A program that is there already is kept: ours starts it with the same event, and an undo puts
//! it back.

use toml_edit::{Array, DocumentMut, Item, Value};

/// The key of the program and its arguments.
const NOTIFY: &str = "notify";
/// The argument after which our command has the program that was there before.
const SEPARATOR: &str = "--";

/// Puts our command, which ends with [`SEPARATOR`], in the place of the notified program.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn add(text: &str, command: &[String], is_ours: impl Fn(&[String]) -> bool) -> Result<String, String> {
    let mut document = parse(text)?;
    let before = words(&document)?;
    let before = if is_ours(&before) { behind_ours(&before) } else { before };
    put(&mut document, &[command, &before].concat());
    Ok(document.to_string())
}

/// Puts the program back that was notified before ours, or removes the key. A file without ours is not changed.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn remove(text: &str, is_ours: impl Fn(&[String]) -> bool) -> Result<String, String> {
    let mut document = parse(text)?;
    let now = words(&document)?;
    if !is_ours(&now) {
        return Ok(text.to_owned());
    }
    match behind_ours(&now).as_slice() {
        [] => drop(document.remove(NOTIFY)),
        before => put(&mut document, before),
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| format!("it is not TOML: {}", error.message()))
}

fn words(document: &DocumentMut) -> Result<Vec<String>, String> {
    let wrong = || format!("{NOTIFY} is not a list of texts");
    let Some(item) = document.get(NOTIFY) else { return Ok(Vec::new()) };
    let array = item.as_array().ok_or_else(wrong)?;
    array.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

fn behind_ours(command: &[String]) -> Vec<String> {
    command.iter().skip_while(|word| *word != SEPARATOR).skip(1).cloned().collect()
}

/// Sets the program. A comment after the value stays.
fn put(document: &mut DocumentMut, command: &[String]) {
    let mut value = Value::Array(command.iter().collect::<Array>());
    if let Some(decor) = document.get(NOTIFY).and_then(Item::as_value).map(Value::decor) {
        *value.decor_mut() = decor.clone();
    }
    document.insert(NOTIFY, Item::Value(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\nmodel = \"m\" # the model\n\n[mcp_servers.time]\ncommand = \"t\"\n";

    fn ours() -> Vec<String> {
        ["tabellion", "hook", "--"].map(str::to_owned).to_vec()
    }

    fn program(text: &str) -> Vec<String> {
        words(&parse(text).unwrap()).unwrap()
    }

    fn is_ours(words: &[String]) -> bool {
        words.first().is_some_and(|word| word == "tabellion")
    }

    #[test]
    fn an_undo_restores_the_file() {
        let added = add(FILE, &ours(), is_ours).unwrap();
        assert_eq!(program(&added), ours());
        assert!(added.contains("# the model") && added.contains("[mcp_servers.time]"), "{added}");
        assert_eq!(remove(&added, is_ours).unwrap(), FILE);
        assert_eq!(remove(FILE, is_ours).unwrap(), FILE);
    }

    #[test]
    fn the_program_that_was_notified_is_kept_and_put_back() {
        let text = format!("notify = [\"say\", \"done\"] # loud\n{FILE}");
        let added = add(&text, &ours(), is_ours).unwrap();
        assert_eq!(program(&added), ["tabellion", "hook", "--", "say", "done"]);
        let twice = add(&added, &ours(), is_ours).unwrap();
        assert_eq!(twice, added);
        assert_eq!(remove(&added, is_ours).unwrap(), text);
    }

    #[test]
    fn a_file_of_another_shape_is_refused() {
        for text in ["notify = \"say\"", "notify = [1]", "= 1"] {
            assert!(add(text, &ours(), is_ours).is_err(), "{text}");
        }
    }
}
