//! The jobs of this project, and when they run.

use kelos::Trigger;
use kelos::embed::{Calendar, Context, Period, Places, Project, ScheduledTime, job};

/// State that all runs share: here, the address of a service. A client or a pool of connections fits as well.
#[derive(Clone)]
pub struct Shop {
    pub address: &'static str,
}

/// Fetches the orders of an hour, once the hour is over.
async fn orders(context: Context, hour: Period, shop: Shop) -> Result<u32, String> {
    context.log(format!("fetching orders from {} to {} of {}", hour.start, hour.end, shop.address));
    Ok(12)
}

/// Reports each morning, after the orders of 6 o'clock were fetched.
async fn report(context: Context, morning: ScheduledTime, (): ()) -> Result<(), String> {
    context.log(format!("the report of {}", morning.time));
    Ok(())
}

/// Does something for somebody, when it is asked to.
async fn greet(context: Context, name: String, (): ()) -> Result<String, String> {
    context.progress("looking for words");
    Ok(format!("hello {name}"))
}

/// The project. An `Err` has all mistakes of a definition, such as a schedule that nobody can read.
pub fn project() -> Result<Project, Box<dyn std::error::Error>> {
    let database = Places::new("database", 2);
    let orders = job("orders", orders)
        .with(Shop { address: "shop.example" })
        .every(&Calendar::hourly())
        .on(&database)
        .description("Fetches the orders of an hour.");
    let report = job("report", report)
        .with(())
        .cron("0 6 * * *")
        .on(&database)
        .when(Trigger::Success { workflow: "orders".parse()? });
    let greet = job("greet", greet).with(()).on_demand();
    Ok(Project::new("NAME", env!("CARGO_PKG_VERSION")).add(orders).add(report).add(greet))
}
