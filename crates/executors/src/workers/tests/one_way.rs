//! Workers whose messages arrive and whose answers are lost.

use jiff::Timestamp;

use super::*;
use crate::workers::session::Now;
use crate::workers::state::State;
use kelos_wire::RemoteWorkerDto;

/// The lease of its workers.
const MINUTE: Duration = Duration::from_secs(60);

/// A state of a hub in which no time passes of itself.
struct Desk {
    state: State,
    now: Now,
}

impl Desk {
    fn new() -> Desk {
        let now = Now { monotonic: Instant::now(), wall: Timestamp::UNIX_EPOCH };
        Desk { state: State::new("desk".to_owned(), MINUTE), now }
    }

    /// Takes in a question of a worker, and gives the runs in the answer.
    fn asks(&mut self, count: u64, answered: Option<u64>, runs: &[RunId]) -> Vec<RunId> {
        let (worker, remote) = (Arc::from("w1"), Some(RemoteWorkerDto::default()));
        let asked = OfferRequest { answered, remote, runs: has(runs), wait_millis: 1, ..word(count, 1, None) };
        self.state.session(&worker, &asked, self.now).map(drop).unwrap();
        assert_eq!(self.state.offered(&worker, &asked), []);
        let record = self.state.record(&worker, None).unwrap();
        self.state.registered(&worker, record);
        self.state.orders(&worker).0.into_iter().map(|order| order.run).collect()
    }

    fn dispatches(&mut self) -> RunId {
        self.state.start(start("app1", "20140101_1", "w1"), Reports::new(|_| {}));
        run("app1", "20140101_1")
    }

    fn passes(&mut self, time: Duration) {
        self.now.monotonic += time;
    }

    /// The runs that went back to the queue.
    fn returned(&mut self) -> Vec<RunId> {
        let queued = |(_, run, report)| (report == Report::NeverStarted).then_some(run);
        self.state.returned().into_iter().filter_map(queued).collect()
    }

    fn is_away(&self) -> bool {
        self.state.seen(self.now)[0].away_since.is_some()
    }
}

#[test]
fn a_run_in_a_lost_answer_goes_back_after_half_a_lease() {
    let mut desk = Desk::new();
    desk.asks(1, Some(0), &[]);
    let run = desk.dispatches();
    for count in 2..=4 {
        assert_eq!(desk.asks(count, Some(1), &[]), std::slice::from_ref(&run), "it is repeated");
        desk.passes(MINUTE / 6);
    }
    desk.passes(MINUTE / 6);
    assert_eq!(desk.asks(5, Some(1), &[]), [], "it is told of no run any more");
    assert_eq!(desk.returned(), [run]);
    assert!(desk.is_away());
    assert_eq!(desk.asks(6, Some(5), &[]), []);
    assert!(!desk.is_away(), "it received an answer");
}

#[test]
fn a_run_that_the_worker_lists_stays_with_it() {
    let mut desk = Desk::new();
    desk.asks(1, Some(0), &[]);
    let run = desk.dispatches();
    desk.asks(2, Some(1), &[]);
    desk.passes(MINUTE);
    desk.asks(3, Some(1), &[run]);
    assert_eq!(desk.returned(), []);
    assert!(desk.is_away());
}

#[test]
fn an_older_program_does_not_say_what_it_received_and_gets_runs() {
    let mut desk = Desk::new();
    desk.asks(1, None, &[]);
    let run = desk.dispatches();
    desk.passes(MINUTE);
    assert_eq!(desk.asks(2, None, &[]), [run]);
    assert!(!desk.is_away());
}
