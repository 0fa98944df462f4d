//! All families of numbers, in the order in which they are written. `docs/metrics.md` describes them.

use crate::text::{Family, Kind};

macro_rules! families {
    ($($name:ident = $kind:ident $text:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) static $name: Family = Family {
            name: $text,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All families, those of servers and those of workers.
        pub static FAMILIES: &[&Family] = &[$(&$name),*];
    };
}

families! {
    BUILD_INFO = Gauge "kelos_build_info" ["version"] "The version of the program; always 1.";
    LEADER = Gauge "kelos_leader" [] "Whether this process leads.";
    READY = Gauge "kelos_ready" [] "Whether this process is ready, as at /health/ready.";
    LEASE_REMAINING = Gauge "kelos_lease_remaining_seconds" [] "How long the lease of the leader lasts if it is not renewed.";
    LAG = Gauge "kelos_lag_seconds" [] "How long ago this node last had all that the log has, which is up to 6 s while nothing is written; only with several nodes.";
    LOG_ENTRY = Gauge "kelos_log_entry" [] "The last entry of the log that this node has followed; only with several nodes.";
    LOG_APPLY = Histogram "kelos_log_apply_seconds" [] "How long it took to apply an entry of another leader to this node; only with several nodes.";
    EVENTS = Counter "kelos_events_total" [] "Events in the log, as this process has counted them.";
    TURN = Histogram "kelos_turn_seconds" ["part"] "How long parts of turns took while this process led: step, commit, perform.";
    STORE_BYTES = Gauge "kelos_store_bytes" [] "The space that the database takes.";
    RUN_FOLDERS = Gauge "kelos_run_folders" [] "Folders of runs on this machine, as of the last look.";
    RUN_FOLDER_BYTES = Gauge "kelos_run_folders_bytes" [] "The space that they take on the disk.";
    RUN_FOLDERS_REMOVED = Counter "kelos_run_folders_removed_total" [] "Folders of runs that were removed because their time was over.";
    RUN_FOLDER_BYTES_REMOVED = Counter "kelos_run_folders_removed_bytes_total" [] "The space that they took.";
    EVENTS_REMOVED = Counter "kelos_history_removed_events_total" [] "Events that were removed from the log because their time was over.";
    HISTORY_RUNS_REMOVED = Counter "kelos_history_removed_runs_total" [] "Runs that were removed from the database because their time was over.";
    RUNS_LIMIT = Gauge "kelos_runs_limit" [] "How many runs of all workflows may be live at a time; only of the leader.";
    RUNS_LIVE = Gauge "kelos_runs_live" [] "Live runs that take a permit of the limit on all; only of the leader.";
    RUNS_QUEUED = Gauge "kelos_runs_queued" [] "Queued slots that only the limit on all runs holds back; only of the leader.";
    POOL_PERMITS = Gauge "kelos_pool_permits" ["pool"] "Permits of a pool; only of the leader.";
    POOL_HELD = Gauge "kelos_pool_permits_held" ["pool"] "Permits of a pool that runs hold; only of the leader.";
    POOL_QUEUED = Gauge "kelos_pool_queued" ["pool"] "Queued slots of the workflows that wait for a pool; only of the leader.";
    WORKERS = Gauge "kelos_workers" ["state"] "Workers by state: working, leaving, away; only of the leader.";
    WORKERS_USED = Gauge "kelos_workers_places_used" [] "Runs that workers have; only of the leader.";
    WORKERS_FREE = Gauge "kelos_workers_places_free" [] "Further runs that workers accept; only of the leader.";
    WORKERS_FENCED = Counter "kelos_workers_runs_fenced_total" [] "Runs that ended because their workers on other machines were cut off for longer than the lease, while this process led; only of the leader.";
    WORKER_FOLDERS = Gauge "kelos_workers_run_folders" ["worker"] "Folders of runs on the disk of a worker on another machine, as it told the leader; only of the leader.";
    WORKER_FOLDER_BYTES = Gauge "kelos_workers_run_folders_bytes" ["worker"] "The space that they take there.";
    WORKER_FOLDERS_REMOVED = Counter "kelos_workers_run_folders_removed_total" ["worker"] "Folders of runs that a worker removed since it started because their time was over; only of the leader.";
    ENDPOINT_CALLS = Gauge "kelos_endpoint_calls_in_progress" ["endpoint"] "Calls of an endpoint of storage in progress.";
    ENDPOINT_CALLS_TOTAL = Counter "kelos_endpoint_calls_total" ["endpoint", "result"] "Calls of an endpoint of storage that ended: answered or failed.";
    ENDPOINT_BROKEN = Gauge "kelos_endpoint_broken" ["endpoint"] "Whether the circuit breaker of an endpoint of storage is open.";
    PROBLEMS = Gauge "kelos_problems" ["severity"] "Problems of definitions, sources and settings, by severity: error or warning.";
    ALERTS = Gauge "kelos_alerts_open" ["condition"] "Alerts that are open, by condition; only of the leader, where there are rules.";
    ALERT_NOTICES = Gauge "kelos_alert_notices_waiting" ["channel"] "Notices that wait for a channel; only of the leader.";
    ALERT_NOTICES_SENT = Counter "kelos_alert_notices_total" ["channel", "result"] "Notices and attempts of a channel since this process leads: sent or failed.";
    BACKFILLS = Gauge "kelos_backfills" [] "Backfills with slots that have not ended.";
    BACKFILL_SLOTS = Gauge "kelos_backfill_slots" [] "Slots of backfills that have not ended.";
    COMPLETE = Gauge "kelos_metrics_complete" [] "Whether what was stored at the start is counted; before it, numbers of workflows are left out.";
    OTHER_WORKFLOWS = Gauge "kelos_metrics_other_workflows" [] "Workflows that are added up under workflow=\"other\".";
    SLOTS = Gauge "kelos_slots" ["project", "workflow", "state"] "Slots by state, with the times of backlogs.";
    TRANSITIONS = Counter "kelos_slot_transitions_total" ["project", "workflow", "state"] "How often slots came into a state.";
    WAITING = Gauge "kelos_slots_waiting" ["project", "workflow", "reason"] "Slots that wait, by the code of the first reason.";
    RUNS = Counter "kelos_runs_total" ["project", "workflow", "outcome"] "Runs that ended, by outcome.";
    RUN_SECONDS = Histogram "kelos_run_seconds" ["project", "workflow"] "How long runs took that ended, from their start.";
    STEPS = Counter "kelos_steps_total" ["project", "workflow", "outcome"] "Runs of steps of flows that ended, by outcome.";
    DEADLINES_MISSED = Counter "kelos_deadlines_missed_total" ["project", "workflow"] "Slots that missed their deadlines.";
    START_LATENESS = Gauge "kelos_start_lateness_seconds" ["project", "workflow"] "How long ago the oldest slot was due that has not started; 0 if there is none.";
    FINISH_LATENESS = Gauge "kelos_finish_lateness_seconds" ["project", "workflow"] "How long ago the oldest slot was due that has not ended; 0 if there is none.";
    PAUSED = Gauge "kelos_workflow_paused" ["project", "workflow"] "Whether a workflow is paused, disabled or frozen; of others together, how many are.";
    WORKER_CONNECTED = Gauge "kelos_worker_connected" [] "Whether the leader answers this worker; only of a worker.";
    WORKER_PLACES = Gauge "kelos_worker_places" [] "How many runs this worker takes at a time; only of a worker.";
    WORKER_BUSY = Gauge "kelos_worker_places_used" [] "Runs that this worker has; only of a worker.";
    WORKER_ENDED = Counter "kelos_worker_runs_total" ["outcome"] "Runs that ended here, by outcome; only of a worker.";
    WORKER_LOST = Counter "kelos_worker_registrations_lost_total" [] "How often the leader took this worker's runs away; only of a worker.";
}
