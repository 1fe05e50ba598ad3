//! C2SP transparency-log formats: signed notes and checkpoints.
