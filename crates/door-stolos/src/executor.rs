//! Kinds of jobs that apps name: shell texts, Python modules on Spark, and programs that people bring.

mod bash;
mod plugin;
mod pyspark;
mod translated;

use kelos_engine::executor::Executors;
use kelos_engine::secrets::Secrets;
use kelos_executors::local::Launcher;
use kelos_executors::{CommandExecutor, SparkExecutor};
use tokio::runtime::Handle;

use translated::TranslatingExecutor;

/// The executors of these kinds: each makes a command of its job.
#[must_use]
pub fn executors(launcher: &Launcher, secrets: &Secrets, runtime: &Handle) -> Executors {
    let commands = CommandExecutor::new(launcher.clone(), runtime.clone()).with_secrets(secrets.clone());
    let spark = SparkExecutor::new(commands.clone());
    let (runs, secrets) = (launcher.dirs().clone(), secrets.clone());
    Executors::default()
        .with("bash", TranslatingExecutor::new(commands.clone(), bash::command))
        .with("plugin", TranslatingExecutor::new(commands, plugin::command))
        .with("pyspark", TranslatingExecutor::new(spark, move |start| pyspark::application(start, &runs, &secrets)))
}
