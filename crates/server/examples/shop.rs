//! A program with jobs of its own, and pages beside them.
//!
//!     cargo run -p kelos-server --example shop
//!
//! Each minute it fetches orders, and bills them once they are there; `refund` is started by hand: on its page, or with
//! `kelos start refund --argument 'input="order-7"'`. The state is in the folder `shop`; Ctrl-C ends it.

use std::error::Error;
use std::time::Duration;

use kelos::Trigger;
use kelos::embed::{Context, Places, Project, Retry, ScheduledTime, job};

/// Somebody else's service; each run gets a clone of it.
#[derive(Clone)]
struct Orders {
    address: &'static str,
}

impl Orders {
    async fn of(&self, minute: &ScheduledTime) -> Result<Vec<u32>, String> {
        // Once in a while the service is busy.
        match minute.time.as_second() / 60 % 7 {
            0 => Err(format!("{} is busy", self.address)),
            minute => Ok((0..minute.unsigned_abs()).map(|n| u32::try_from(n).unwrap_or(0) * 5).collect()),
        }
    }
}

async fn fetch(context: Context, minute: ScheduledTime, orders: Orders) -> Result<Vec<u32>, String> {
    let all = orders.of(&minute).await?;
    context.log(format!("{} orders", all.len()));
    Ok(all)
}

async fn bill(context: Context, minute: ScheduledTime, (): ()) -> Result<(), String> {
    context.log(format!("billing the orders of {}", minute.time));
    Ok(())
}

async fn refund(context: Context, order: String, (): ()) -> Result<String, String> {
    context.progress("asking the bank");
    Ok(format!("{order} is refunded"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let bank = Places::new("bank", 1);
    let soon = Retry::exponential(Duration::from_secs(5)).at_most(Duration::from_secs(60));
    let orders = Orders { address: "orders.example" };
    let project = Project::new("shop", env!("CARGO_PKG_VERSION"))
        .folder("shop")
        .add(
            job("fetch", fetch)
                .with(orders)
                .cron("* * * * *")
                .retry(soon)
                .description("Fetches the orders of a minute."),
        )
        .add(
            job("bill", bill)
                .with(())
                .cron("* * * * *")
                .on(&bank)
                .when(Trigger::Success { workflow: "fetch".parse()? }),
        )
        .add(job("refund", refund).with(()).on(&bank).on_demand().tags(["by hand"]));
    let running = project.start().await?;
    let served = kelos_server::serve_project(&running, "127.0.0.1:7437").await?;
    println!("shop answers at http://{}/ui", served.address());
    tokio::signal::ctrl_c().await?;
    served.stop().await?;
    running.stop().await;
    Ok(())
}
