//! Against a real Oozie.
