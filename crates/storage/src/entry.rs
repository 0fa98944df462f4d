//! Entries of folders.

use jiff::Timestamp;

/// Whether it is a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file, or an object.
    File,
    /// A folder, or a prefix that objects lie under.
    Folder,
}

/// An existing file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its last part, without slashes; empty for the root.
    pub name: String,
    /// Whether it is a file or a folder.
    pub kind: Kind,
    /// Bytes of a file; 0 for a folder.
    pub bytes: u64,
    /// When it was last written; none if the system does not say, as for prefixes.
    pub modified: Option<Timestamp>,
}
