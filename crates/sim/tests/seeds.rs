//! A few seeds of the simulation in every test run; `cargo xtask sim` runs as many as you like.

use kelos_sim::trims::FIRST_WITH_TRIMS;

/// Seeds that once found a bug, each with what it found.
const FOUND: [(u64, &str); 75] = [
    (2, "a probe's wait of half a millisecond made the timer and the clock miss each other for ever"),
    (9, "a workflow without a free place of its own went round in the queue of those that the global limit starves"),
    (
        100_050,
        "a doubled word that a run was never started, coming late, ended a run that went on: one more ran than may",
    ),
    (100_571, "the same, and the slot had two live runs"),
    (6919, KILLED_THEN_MARKED),
    (12_254, KILLED_THEN_MARKED),
    (14_570, KILLED_THEN_MARKED),
    (19_455, KILLED_THEN_MARKED),
    (6357, KEPT_BEFORE),
    (7706, KEPT_BEFORE),
    (17_338, KEPT_BEFORE),
    (19_904, KEPT_BEFORE),
    (137, "a slot waited for a job of an app that was gone, and nobody opened the job once the app was back"),
    (
        199,
        "the children of a job that a person marked were lost where functions had to be asked what else they wait for",
    ),
    (
        7400,
        "what hangs on a job was not opened again with it where a job between the two was opened by the same request",
    ),
    (7583, PARENT_AND_TRIGGER),
    (7927, PARENT_AND_TRIGGER),
    (22, "a schedule that was fired by hand forgot the slot that collected, and the next fact opened another"),
    (56, "after a restart the runs of a program counted twice"),
    (297, NEWLY_HELD),
    (344, NEWLY_HELD),
    (1910, "who waited for one limit on runs was not looked at when there was room, because another limit left none"),
    (8894, "who waited for fewer runs stood in line with the priority that it had before"),
    (7551, "a window that clocks are put forward into was open before the moment at which it was said to open"),
    (8189, "a schedule that got another program took along when its former one ran last, and nobody was woken"),
    (46, "a held slot that had collected another fact was let pass before one that had been held for longer"),
    (92, "whose time was over went, because what its program had run was noted once the run had left the account"),
    (537, "a job that was told of before its files had been read succeeded, and what waits for it was forgotten"),
    (1900, "of two definitions in one turn the first was in the log and in no history"),
    (138, "in lockstep a process ended between what it had heard and the tick that belongs to the same turn"),
    (2024, "the judge of jobs looked at a turn that had failed as if nothing were left to do"),
    (1516, "the judge had constraints that abort be met at the last moment of a slot's time"),
    (65, OF_TWO_KINDS),
    (77, OF_TWO_KINDS),
    (1144, OF_TWO_KINDS),
    (100_185, "an app whose worker had gone to another took a turn among those that the limit on all runs holds back"),
    (100_219, "an app whose worker had gone to another stayed in the lines of pools, and kept their permits"),
    (100_089, "the full scan knew after a restart how often a worker attempts what it has"),
    (35, "a queued slot whose time had left the schedule kept those of the backlog from their turn"),
    (40, "a time of the backlog was passed over as long as others were queued that go after it"),
    (81, "a backfill took times of another schedule for planned that lay in what was left of a backlog"),
    (
        910,
        "a backlog that a request had emptied kept the schedule that it was planned by, and times of the next were lost",
    ),
    (637, MISSED_TIMES),
    (1199, MISSED_TIMES),
    (1479, MISSED_TIMES),
    (2712, UPSTREAM_NOT_PLANNED),
    (2072, UPSTREAM_NOT_PLANNED),
    (2923, "the judge took a slot for pending that was aborted and opened again in one turn"),
    (1092, HELD_BEFORE),
    (1226, HELD_BEFORE),
    (700_044, BETWEEN_TWO),
    (700_324, BETWEEN_TWO),
    (
        2529,
        "the judge had a place for a job whose workers came for a second each, and whenever one came the place was taken",
    ),
    (5704, NO_LONGER_SERVED),
    (6002, NO_LONGER_SERVED),
    (700_746, NO_LONGER_SERVED),
    (701_253, NEVER_ADD_UP),
    (701_751, NEVER_ADD_UP),
    (702_642, NEVER_ADD_UP),
    (703_154, NEVER_ADD_UP),
    (701_586, ENDED_AHEAD),
    (702_768, ENDED_AHEAD),
    (701_761, NEXT_TOKEN),
    (703_474, NEXT_TOKEN),
    (701_888, NOT_DUE),
    (703_189, NOT_DUE),
    (
        800_018,
        "a person killed a step, the run of its flow was over before the step's was, and the end of that broke an invariant",
    ),
    (800_195, "a run was made by a signal and ended by a person, and the start that followed broke an invariant"),
    (800_663, "an error step expired that waited for others to end, although its signal had come"),
    (801_291, "after a restart an error step was given what an earlier run of the expired step had given"),
    (2_500_175, "the full scan gave the slots of a batch as many attempts as the worker of an earlier run had offered"),
    (2_500_419, "two outputs of a flow had the same name once it was formatted, and which one counted was no rule"),
    (2_501_352, WITHOUT_ITS_LABELS),
    (2_502_051, WITHOUT_ITS_LABELS),
    (1_000_016, "the full scan told the ends of the runs that one request killed in another order than the core"),
];

const WITHOUT_ITS_LABELS: &str = "a job that a worker without its labels asked for by name went to another worker, ahead of others that were queued before";

const HELD_BEFORE: &str = "the full scan counted the wait of a slot that was held before its workflow counted from the opening from another moment";

const BETWEEN_TWO: &str =
    "a start by hand stood in the queue between two slots that ran together, and one of these was started twice";

const NO_LONGER_SERVED: &str =
    "an app whose worker ended, or offered to serve others, stayed in the lines of pools, and kept their permits";

const NEVER_ADD_UP: &str = "the judge had a place for a job that takes more tokens than add up by the rate that another definition gives its pool";
const ENDED_AHEAD: &str =
    "a batch waited for a period that was not over, although its slot had ended: by another scheduler, or as an hour";

const NEXT_TOKEN: &str =
    "a token came for somebody who needs one, and all waited for the second one, which somebody in front needs";

const NOT_DUE: &str = "the full scan opened a period that was not over again, for a backfill of what a version made";

const NEWLY_HELD: &str =
    "who was newly held was let pass before the store had answered for somebody whose turn came first";

const PARENT_AND_TRIGGER: &str =
    "a job's trigger waited for a job that was one of its parents, too, and news of that reached the parents only";

const OF_TWO_KINDS: &str =
    "in a line of slots by time and of slots named by moments all of the first went before all of the second";

const UPSTREAM_NOT_PLANNED: &str =
    "a backlog took slots that had been imported, or were of an earlier schedule, for ones that never were";

const MISSED_TIMES: &str = "the cron time after those that were missed counted in the place of the first of them, before earlier ones of others";

const KILLED_THEN_MARKED: &str = "the full scan still counted the retries of a slot that was killed and marked later";

const KEPT_BEFORE: &str =
    "a start left somebody in front short in a second pool, and what it had kept until then stayed idle";

fn hold(seeds: impl Iterator<Item = u64>) {
    let failures: Vec<_> = seeds.filter_map(|seed| kelos_sim::check_seed(seed).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_first_seeds_hold() {
    hold(0..12);
}

#[test]
fn the_first_seeds_with_periods_hold() {
    hold(200_000..200_006);
}

#[test]
fn the_first_seeds_with_rates_hold() {
    hold(600_000..600_006);
}

#[test]
fn the_first_seeds_with_batches_and_permits_within_runs_hold() {
    let mut figures = kelos_sim::Figures::default();
    for seed in 700_000..700_015 {
        figures += kelos_sim::check_seed(seed).unwrap();
    }
    assert!(figures.granted >= 40, "runs are granted something: {figures:?}");
}

#[test]
fn the_first_seeds_with_flows_hold() {
    hold(800_000..800_006);
}

#[test]
fn the_first_seeds_with_steps_that_are_done_again_hold() {
    let mut figures = kelos_sim::Figures::default();
    for seed in 1_000_000..1_000_008 {
        figures += kelos_sim::check_seed(seed).unwrap();
    }
    assert!(figures.repeated >= 10, "steps are done again: {figures:?}");
}

#[test]
fn the_first_seeds_with_deadlines_hold() {
    let mut figures = kelos_sim::Figures::default();
    for seed in 4_500_000..4_500_006 {
        figures += kelos_sim::check_seed(seed).unwrap();
    }
    assert!(figures.late >= 40, "slots are late: {figures:?}");
}

#[test]
fn the_first_seeds_with_removed_history_hold() {
    let mut figures = kelos_sim::Figures::default();
    for seed in FIRST_WITH_TRIMS..FIRST_WITH_TRIMS + 8 {
        figures += kelos_sim::check_seed(seed).unwrap();
    }
    assert!(figures.removed >= 500, "events are removed: {figures:?}");
}

#[test]
fn seeds_that_found_something_hold() {
    hold(FOUND.iter().map(|(seed, _)| *seed));
}
