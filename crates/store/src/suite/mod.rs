//! The contract of a store as one suite of tests that each adapter runs.
//!
//! A test passes in a maker of empty [`Place`]s; the suite opens stores there, writes histories that a small
//! [`World`] generates, and compares every answer with the world.

mod backlog;
#[cfg(test)]
mod bounded;
mod facts;
mod faults;
mod lead;
mod log;
mod measure;
mod pages;
mod proxy;
mod random;
mod ranges;
mod rows;
mod steps;
mod trims;
mod turns;
mod walk;
mod world;

use crate::Journal;

pub use faults::log_faults;
pub use log::{log_suite, log_survives_a_crash, log_tells_of_releases};
pub use measure::measure_log;
pub use proxy::{Break, Proxy};
pub use random::{agree, history};

/// The place of the data of one store.
pub trait Place {
    /// Opens a store on the data; another one may be open, or have been, before.
    fn open(&mut self) -> Box<dyn Journal>;
}

type Case = (&'static str, fn(&mut dyn Place));

/// Runs the whole contract; `fresh` makes an empty place each time.
///
/// # Panics
/// Where the store breaks the contract.
pub fn suite(fresh: &mut dyn FnMut() -> Box<dyn Place>) {
    run(SHARED, fresh);
    suite_of_nodes(fresh);
}

/// The promises of stores that share one medium: a lease by the clock of all, and turns that others see at once.
const SHARED: &[Case] = &[
    ("a lease that ran out is taken", lead::a_lease_that_ran_out_is_taken),
    ("turns of others are heard of", turns::turns_of_others_are_heard_of),
];

/// The contract for stores with a state of their own that follows a log.
///
/// # Panics
/// Where the store breaks the contract.
pub fn suite_of_nodes(fresh: &mut dyn FnMut() -> Box<dyn Place>) {
    let cases: &[Case] = &[
        ("an empty store answers", rows::an_empty_store_answers),
        ("every row reads back", rows::every_row_reads_back),
        ("a turn that is refused leaves nothing", rows::a_turn_that_is_refused_leaves_nothing),
        ("definitions are kept", rows::definitions_are_kept),
        ("registers are set and deleted", rows::registers_are_set_and_deleted),
        ("recall finds slots", rows::recall_finds_slots),
        ("runs are recalled in order", rows::runs_are_recalled_in_order),
        ("one leads at a time", lead::one_leads_at_a_time),
        ("a crash makes room", lead::a_crash_makes_room),
        ("a stale lease writes nothing", lead::a_stale_lease_writes_nothing),
        ("slots are paged", pages::slots_are_paged),
        ("many slots of one time are in order", pages::many_slots_of_one_time_are_in_order),
        ("slots are counted", pages::slots_are_counted),
        ("the oldest slots come first", pages::the_oldest_slots_come_first),
        ("slots are tallied", pages::slots_are_tallied),
        ("times of backlogs are listed as slots", backlog::times_are_listed_as_slots),
        ("times of backlogs are counted", backlog::times_are_counted),
        ("steps are found by their run", steps::steps_are_found_by_their_run),
        ("pages of steps begin after steps", steps::pages_of_steps_begin_after_steps),
        ("runs of slots are found among those of steps", steps::runs_of_slots_are_found_among_those_of_steps),
        ("runs are paged", pages::runs_are_paged),
        ("runs of a range are found", ranges::runs_of_a_range_are_found),
        ("runs of a range are found although the clock jumped", ranges::runs_are_found_although_the_clock_jumped),
        ("a long run is found behind many short ones", ranges::a_long_run_is_found_behind_many_short_ones),
        ("the log is paged", pages::the_log_is_paged),
        ("pages hold still while rows come", pages::pages_hold_still_while_rows_come),
        ("a needle is found", pages::a_needle_is_found),
        ("facts are paged", facts::facts_are_paged),
        ("a name is written once", facts::a_name_is_written_once),
        ("a fact is written with what it leads to", facts::a_fact_is_written_with_what_it_leads_to),
        ("what is collected reads back", facts::what_is_collected_reads_back),
        ("turns are numbered and chained", turns::turns_are_numbered_and_chained),
        ("digests tell histories apart", turns::digests_tell_histories_apart),
        ("a turn says what it deletes", turns::a_turn_says_what_it_deletes),
        ("a refusal leaves no turn", turns::a_refusal_leaves_no_turn),
        ("turns go on under the next leader", turns::turns_go_on_under_the_next_leader),
        ("a frozen reader sees one turn", turns::a_frozen_reader_sees_one_turn),
        ("history is removed, and what is left reads back", trims::history_is_removed_and_what_is_left_reads_back),
        ("nonsense is no cursor", pages::nonsense_is_no_cursor),
    ];
    run(cases, fresh);
}

fn run(cases: &[Case], fresh: &mut dyn FnMut() -> Box<dyn Place>) {
    for (name, case) in cases {
        println!("contract: {name}");
        case(&mut *fresh());
    }
}
