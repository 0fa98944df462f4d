//! `kelos schema`: JSON schemas of the files that are not scripts, for editors.

use crate::failure::Failure;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct SchemaArgs {
    /// File to describe
    #[arg(value_enum)]
    file: SchemaFile,
}

/// A file that has a schema.
#[derive(Clone, Copy, clap::ValueEnum)]
enum SchemaFile {
    /// The file of --config: groups of the board, links, watched prefixes
    Config,
    /// tasks.json: apps, and what they depend on
    Tasks,
    /// identifiers.json: the values of identifiers of job ids
    Identifiers,
}

impl SchemaFile {
    /// Its JSON schema, draft 7, which most editors read.
    const fn schema(self) -> &'static str {
        match self {
            SchemaFile::Config => include_str!("config.json"),
            SchemaFile::Tasks => include_str!("tasks.json"),
            SchemaFile::Identifiers => include_str!("identifiers.json"),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn run(args: &SchemaArgs) -> Result<u8, Failure> {
    text::print(args.file.schema());
    Ok(0)
}

#[cfg(test)]
mod tests;
