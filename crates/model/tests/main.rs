//! The model, from its public face.

mod calendars;
mod codec;
mod constraint_forms;
mod cron_quartz;
mod cron_schedule;
mod cron_unix;
mod facts;
mod job_graph;
mod matrix;
mod names;
mod outcomes;
mod parameters;
mod paths;
mod random;
mod reasons;
mod retry;
mod support;
mod template;
mod trigger_forms;
mod triggers;
