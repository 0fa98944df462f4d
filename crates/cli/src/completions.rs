//! `kelos completions`: what a shell completes the command line by.

use clap::CommandFactory;

use crate::args::Cli;
use crate::failure::Failure;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: clap_complete::Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kelos", &mut out);
    text::print(&String::from_utf8_lossy(&out));
    Ok(0)
}
