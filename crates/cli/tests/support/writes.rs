//! Registers that are written at all nodes while something goes wrong.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::nodes::Nodes;
use super::within;

/// How long all nodes may take to be of one mind after the last fault, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Registers that are written all the time, at all nodes.
#[derive(Default)]
pub(crate) struct Writes {
    addresses: Arc<Mutex<Vec<Option<String>>>>,
    acknowledged: Arc<Mutex<BTreeSet<u64>>>,
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Writes {
    pub(crate) fn begin(&mut self, nodes: &Nodes) {
        self.note(nodes);
        let count = nodes.all.len();
        for node in 0..nodes.all.len() {
            let (addresses, acknowledged, ends) =
                (self.addresses.clone(), self.acknowledged.clone(), self.ends.clone());
            self.threads.push(std::thread::spawn(move || {
                let agent: ureq::Agent = ureq::Agent::config_builder()
                    .http_status_as_error(false)
                    .timeout_global(Some(Duration::from_secs(20)))
                    .build()
                    .into();
                for number in (node as u64..).step_by(count) {
                    if ends.load(Ordering::SeqCst) {
                        return;
                    }
                    let address = addresses.lock().expect("addresses")[node].clone();
                    let Some(address) = address else {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    };
                    let request = agent.put(format!("{address}/api/v1/registers/chaos/k{number}"));
                    let answer = request.header("content-type", "application/json").send(number.to_string());
                    if answer.is_ok_and(|answer| answer.status() == 200) {
                        acknowledged.lock().expect("numbers").insert(number);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }));
        }
    }

    /// Notes where the nodes are now.
    pub(crate) fn note(&self, nodes: &Nodes) {
        let now = nodes.all.iter().map(|node| node.is_up().then(|| node.address())).collect();
        *self.addresses.lock().expect("addresses") = now;
    }

    pub(crate) fn end(&mut self) -> BTreeSet<u64> {
        self.ends.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a writer"));
        self.acknowledged.lock().expect("numbers").clone()
    }
}

/// Waits until all nodes have what was acknowledged to anybody.
#[track_caller]
pub(crate) fn nodes_have(nodes: &Nodes, acknowledged: &BTreeSet<u64>) {
    for node in &nodes.all {
        within(PATIENCE, "all that was acknowledged", || {
            let there = node.registers("chaos")?;
            let lacks = |key: &u64| there.get(&format!("k{key}")) != Some(key);
            let missing: Vec<&u64> = acknowledged.iter().filter(|key| lacks(key)).take(5).collect();
            if !missing.is_empty() {
                println!("{} lacks {missing:?}", node.name);
            }
            missing.is_empty().then_some(())
        });
    }
}
