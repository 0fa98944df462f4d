//! The call of a function that is polled by hand, without a task: in rehearsals, where most functions end at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::context::Context;
use super::function::{BodyFuture, FailedCall, FunctionEnd, FunctionJob, panicked};
use super::input::SlotInput;

/// A function that was called and has not ended.
pub(super) struct Call {
    future: BodyFuture,
    context: Context,
    /// Its waker, once it did not end at once.
    waker: Option<Arc<CallWaker>>,
}

/// The waker of a call. It remembers a wake, since the call may not be polled at that time.
struct CallWaker {
    is_woken: AtomicBool,
    /// The waker of the thread that waits for the call, if any does.
    waiting: Mutex<Option<Waker>>,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Call {
    /// Calls a function, without going on with it.
    pub(super) fn new(job: &FunctionJob, context: Context, input: &SlotInput<'_>) -> Result<Call, FailedCall> {
        // Reading the input may panic as well as the function.
        let called = catch_unwind(AssertUnwindSafe(|| (job.body)(context.clone(), input)));
        let future = called.map_err(|panic| panicked(&*panic))?;
        Ok(Call { future, context, waker: None })
    }

    /// The surroundings of its run.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Whether it may go on.
    pub(super) fn is_woken(&self) -> bool {
        self.waker.as_ref().is_none_or(|waker| waker.is_woken.load(Ordering::SeqCst))
    }

    /// Goes on until the function ends or rests, and returns its end. A function rests while it is [parked](Context::park): it
    /// waits for something that the test decides. Anything else that it waits for is waited for here, for at most `patience`.
    pub(super) fn go_on(&mut self, runtime: &Runtime, patience: Duration) -> Option<FunctionEnd> {
        let Some(waker) = self.waker.clone() else {
            let _inside = runtime.enter();
            if let Poll::Ready(end) = self.poll(Waker::noop()) {
                return Some(end);
            }
            // It is polled once more, with a waker.
            self.waker = Some(Arc::new(CallWaker { is_woken: AtomicBool::new(true), waiting: Mutex::default() }));
            return self.go_on(runtime, patience);
        };
        let ended = runtime.block_on(async {
            tokio::time::timeout(patience, std::future::poll_fn(|thread| self.poll_until_rest(&waker, thread))).await
        });
        ended.unwrap_or_else(|_| {
            let reason = format!("its function did not end within {} s", patience.as_secs_f64());
            Some(Err(FailedCall { reason, ..FailedCall::default() }))
        })
    }

    fn poll_until_rest(&mut self, waker: &Arc<CallWaker>, thread: &task::Context<'_>) -> Poll<Option<FunctionEnd>> {
        *waker.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.waker().clone());
        if waker.is_woken.swap(false, Ordering::SeqCst)
            && let Poll::Ready(end) = self.poll(&Waker::from(waker.clone()))
        {
            return Poll::Ready(Some(end));
        }
        if waker.is_woken.load(Ordering::SeqCst) {
            // One that wakes itself for ever is to run out of patience, too.
            thread.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.context.is_parked() { Poll::Ready(None) } else { Poll::Pending }
    }

    fn poll(&mut self, waker: &Waker) -> Poll<FunctionEnd> {
        let polled =
            catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(&mut task::Context::from_waker(waker))));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(&*panic))))
    }
}
