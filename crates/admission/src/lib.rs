//! Decides, from what was declared and what was spent, whether a tool call may go on (VAP, draft 0.1).
