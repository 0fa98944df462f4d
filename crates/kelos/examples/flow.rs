//! A purchase as a flow: checked, reserved and paid at a time, approved, shipped; and what happens where that fails.
//!
//!     cargo run -p kelos --example flow

use std::error::Error;
use std::time::Duration;

use kelos::embed::{Context, Failure, FlowRun, Project, Rate, Retry, flow, signal, step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An order of a customer.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    customer: String,
    items: Vec<String>,
}

/// An order with its price.
#[derive(Debug, Serialize, Deserialize)]
struct Checked {
    customer: String,
    price: usize,
}

/// The approval of an order.
#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    by: String,
}

/// The input of an error step: the failure.
#[derive(Debug, Deserialize)]
struct Failed {
    failed: String,
    error: String,
}

/// The input of the last step: the output of the payment, and the payload of the approval.
#[derive(Debug, Deserialize)]
struct Shipment {
    payment: String,
    by: String,
}

async fn check(_: Context, order: Order, _: ()) -> Result<Checked, String> {
    match order.items.len() {
        0 => Err("the order has no items".to_owned()),
        items => Ok(Checked { customer: order.customer, price: 100 * items }),
    }
}

async fn reserve(context: Context, order: Checked, _: ()) -> Result<(), String> {
    context.log(format!("reserving goods of {} for {}", order.price, order.customer));
    Ok(())
}

async fn pay(context: Context, order: Checked, limit: usize) -> Result<Value, Failure> {
    if order.price > limit {
        return Err(Failure::new("no money").with(json!({ "missing": order.price - limit })));
    }
    // The same for a repeated start, so that the bank takes the money once.
    Ok(json!({ "payment": context.run().to_string() }))
}

async fn apologise(context: Context, what: Failed, _: ()) -> Result<String, String> {
    context.log(format!("{} failed: {}", what.failed, what.error));
    Ok("a letter".to_owned())
}

async fn ship(_: Context, shipment: Shipment, _: ()) -> Result<String, String> {
    Ok(format!("paid by {}, approved by {}", shipment.payment, shipment.by))
}

fn shop() -> Project {
    let bank = Rate::new("bank", 60, Duration::from_secs(60)).burst(10);
    let check = step("check", check).with(());
    let stock = step("stock", reserve).with(());
    let pay = step("pay", pay).with(250).on(&bank).timeout(Duration::from_secs(60));
    let pay = pay.retry(Retry::fixed(Duration::from_secs(1)).times(1));
    let approval = signal::<Approval>("approval").within(2 * DAY);
    let sorry = step("sorry", apologise).with(());
    let ship = step("ship", ship).with(());
    let paid = (pay & approval).or_else(sorry);
    Project::new("shop", env!("CARGO_PKG_VERSION")).add(flow("purchase", check >> (stock & paid) >> ship))
}

fn print(name: &str, run: &FlowRun) {
    println!("{name}: {}", run.state);
    for step in &run.steps {
        let error = step.error.as_deref().map(|error| format!(", {error}")).unwrap_or_default();
        println!("  {} {}{error}: {}", step.name, step.state, Value::Object(step.outputs.clone()));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let running = shop().start().await?;
    let purchase = running.flow("purchase");
    for (name, items) in [("order-42", vec!["tea".to_owned()]), ("order-43", vec!["a piano".to_owned(); 3])] {
        purchase.start(name, &Order { customer: "Ann".to_owned(), items }).await?;
        // It may come before the step waits for it.
        purchase.signal(name, "approval", &Approval { by: "Ben".to_owned() }).await?;
        let ended = purchase.end(name).await?;
        print(name, &ended);
        if !ended.recovered.is_empty() {
            println!("  recovered from {}", ended.recovered.join(", "));
        }
    }
    running.stop().await;
    Ok(())
}
