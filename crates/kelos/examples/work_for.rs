//! A program whose functions run for a server: an hourly series, and a flow of two steps.
//!
//! `KELOS_TOKEN_FILE=reports.token cargo run -p kelos --features full --example work_for -- http://127.0.0.1:7437`, with a token of
//! `kelos token add reports --role worker --role author@reports`.

use kelos::embed::{Calendar, Context, Period, Project, Retry, flow, job, step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    items: u32,
}

async fn clicks(context: Context, hour: Period, (): ()) -> Result<u32, String> {
    context.log(format!("counting the clicks from {} to {}", hour.start, hour.end));
    Ok(42)
}

async fn check(_: Context, order: Order, (): ()) -> Result<Order, String> {
    if order.items == 0 { Err("the order is empty".to_owned()) } else { Ok(order) }
}

async fn ship(context: Context, order: Order, (): ()) -> Result<(), String> {
    context.log(format!("shipping {} items", order.items));
    Ok(())
}

fn reports() -> Project {
    let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly());
    let ship = step("ship", ship).with(()).retry(Retry::fixed(std::time::Duration::from_secs(30)).times(3));
    Project::new("reports", "1.0").add(clicks).add(flow("purchase", step("check", check).with(()) >> ship))
}

#[tokio::main]
async fn main() {
    let server = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7437".to_owned());
    let started = reports().work_for(&server).on_news(|news| println!("{news}")).start().await;
    let ended = match started {
        Ok(working) => {
            working.changes().iter().for_each(|change| println!("{change}"));
            working.until_signal().await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        eprintln!("error: failed to {error}");
        std::process::exit(1);
    }
}
