//! `kelos types`: what editors know scripts by.

use crate::failure::Failure;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct TypesArgs {}

#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn run(_: &TypesArgs) -> Result<u8, Failure> {
    text::print(kelos_sandbox::TYPES);
    Ok(0)
}
