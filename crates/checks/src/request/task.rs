//! The task that the work was done for (section 4.2.2).

use crate::error::{Members, RequestError, only, short_text};
use crate::limits::{TASK_TEXT_CHARACTERS, TASK_TYPE_CHARACTERS};

/// Checks the optional member `task`.
pub(super) fn check(top: &Members<'_>) -> Result<(), RequestError> {
    let Some(task) = top.optional_object("task")? else { return Ok(()) };
    let texts = [
        ("task_id", TASK_TEXT_CHARACTERS),
        ("task_type", TASK_TYPE_CHARACTERS),
        ("description", TASK_TEXT_CHARACTERS),
    ];
    only(&task, &texts.map(|(name, _)| name))?;
    texts
        .into_iter()
        .filter(|(name, _)| task.has(name))
        .try_for_each(|(name, most)| short_text(&task, name, most).map(drop))
}
