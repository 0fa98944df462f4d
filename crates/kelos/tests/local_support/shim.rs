//! The shim for the tests of local runs, and a server that they can kill.
//!
//! - `__shim` is the fork server of shims;
//! - `serve ROOT SPEC` starts the run that the JSON text `SPEC` describes, says so, and stays until
//!   it is killed.

use std::path::Path;

use kelos_executors::local::{Launcher, Limits, RunSpec, own_shim, shim_main};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "__shim"] => std::process::exit(shim_main()),
        [_, "serve", root, spec] => serve(Path::new(root), serde_json::from_str(spec)?),
        _ => Err("expected `__shim` or `serve ROOT SPEC`".into()),
    }
}

fn serve(root: &Path, spec: RunSpec) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let launcher = Launcher::new(root, own_shim(), Limits::default())?;
        let started = launcher.start(&spec).await?;
        println!("started {}", started.external_id);
        std::future::pending().await
    })
}
