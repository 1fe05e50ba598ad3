//! One message against one session. To come.
