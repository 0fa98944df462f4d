//! `kelos completions`: the file by which a shell completes the command line.

use crate::failure::Failure;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: clap_complete::Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn run(args: &CompletionsArgs, command: &mut clap::Command) -> Result<u8, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, command, "kelos", &mut out);
    text::print(&String::from_utf8_lossy(&out));
    Ok(0)
}
