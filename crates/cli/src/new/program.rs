//! Runs the project until Ctrl-C.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let project = LIBRARY::project()?;
    #[cfg(feature = "sqlite")]
    let project = project.folder(".kelos");
    let running = project.start().await?;

    let greeting = running.run("greet", "world").await?;
    println!("{}", greeting.output::<String>()?);

    println!("orders are fetched each hour, the report is made at 6:00 UTC; Ctrl-C ends this");
    tokio::signal::ctrl_c().await?;
    running.stop().await;
    Ok(())
}
