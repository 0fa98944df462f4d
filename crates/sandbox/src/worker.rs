//! The threads that scripts run on. Each owns the worlds of its files: the engine's objects never
//! leave the thread that made them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::code::ProblemCode;
use crate::limits::Limits;
use crate::problem::Problem;
use crate::realm::{Call, EvaluationResult, Realm};
use crate::recipe::Recipe;

/// Room for the engine's stack and for the host functions below it.
pub(crate) const STACK_ROOM: usize = 7 << 20;

enum Order {
    Evaluate(Arc<Recipe>, usize, Sender<(usize, EvaluationResult)>),
    Call(Call, Sender<Result<String, Problem>>),
}

/// A handle to one thread; dropping the last one ends it.
pub(crate) struct Worker {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn start(limits: &Limits, number: usize) -> std::io::Result<Worker> {
        let (orders, inbox) = channel();
        let limits = limits.clone();
        let thread = thread::Builder::new()
            .name(format!("script-{number}"))
            .stack_size(limits.stack_bytes + STACK_ROOM)
            .spawn(move || Bench { limits, worlds: Vec::new() }.work(&inbox))?;
        Ok(Worker { orders: Some(orders), thread: Some(thread) })
    }

    /// Orders the evaluation of a file; the answer carries `number`. False if the thread has ended.
    pub(crate) fn evaluate(
        &self,
        recipe: Arc<Recipe>,
        number: usize,
        reply: &Sender<(usize, EvaluationResult)>,
    ) -> bool {
        self.order(Order::Evaluate(recipe, number, reply.clone()))
    }

    /// Calls a function and waits for its answer; none if the thread has ended.
    pub(crate) fn call(&self, call: Call) -> Option<Result<String, Problem>> {
        let (reply, answer) = channel();
        self.order(Order::Call(call, reply));
        answer.recv().ok()
    }

    fn order(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        // A script's thread may drop the last handle, and a thread can't join itself.
        let thread = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            // A panic of the thread was reported where it mattered.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Bench {
    limits: Limits,
    /// Worlds for further calls, the latest used last.
    worlds: Vec<(u64, Realm)>,
}

impl Bench {
    fn work(&mut self, inbox: &Receiver<Order>) {
        for order in inbox {
            // The receiver may be gone by now.
            match order {
                Order::Evaluate(recipe, number, reply) => {
                    let _ = reply.send((number, self.evaluate(&recipe)));
                }
                Order::Call(call, reply) => {
                    let _ = reply.send(self.call(&call));
                }
            }
        }
    }

    fn evaluate(&mut self, recipe: &Recipe) -> EvaluationResult {
        let limits = &self.limits;
        // Dropped at once: most files leave no function, and a world is made again faster than it is kept.
        guarded(&recipe.file, || Realm::evaluate(recipe, limits).1).unwrap_or_else(|problem| EvaluationResult {
            problems: vec![problem],
            failed: true,
            ..EvaluationResult::default()
        })
    }

    fn call(&mut self, call: &Call) -> Result<String, Problem> {
        let recipe = &call.recipe;
        let known = self.worlds.iter().position(|(number, _)| *number == recipe.number);
        let realm = match known {
            Some(place) => self.worlds.remove(place).1,
            None => self.again(recipe)?,
        };
        let answer = guarded(&recipe.file, || realm.call(call))?;
        if realm.is_sound() {
            self.worlds.push((recipe.number, realm));
            let over = self.worlds.len().saturating_sub(self.limits.kept_worlds);
            self.worlds.drain(..over);
        }
        answer
    }

    /// Makes the world of a good file again.
    fn again(&self, recipe: &Recipe) -> Result<Realm, Problem> {
        let (realm, evaluated) = guarded(&recipe.file, || Realm::evaluate(recipe, &self.limits))?;
        let error = evaluated.problems.into_iter().find(Problem::is_error);
        match (realm, error) {
            (Some(realm), None) => Ok(realm),
            (_, Some(error)) => Err(error),
            (None, None) => {
                Err(Problem::error(&recipe.file, ProblemCode::Bug, "failed to make a world for the script".to_owned()))
            }
        }
    }
}

/// A bug of ours must not end the thread that all files need.
pub(crate) fn guarded<T>(file: &str, work: impl FnOnce() -> T) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(file, words, "panic while running a script");
        Problem::error(file, ProblemCode::Bug, format!("failed to run the script because of a fault in Kelos: {words}"))
    })
}
