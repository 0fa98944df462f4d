//! The library, as programs use it, and the engine and the node below it.

mod broken_databases;
mod deletions;
mod embed;
mod embed_crash;
mod embed_cuttle;
mod embed_flows;
mod embed_history;
mod embed_rehearsal;
mod embed_scheduler;
mod embed_trouble;
mod embed_within;
mod engine;
mod flow_sample;
mod given;
mod history;
mod inbox;
mod job_types;
mod local_log;
mod local_restart;
mod local_run;
mod local_secrets;
mod local_support;
mod new_project;
mod old_databases;
mod oozie;
mod spark;
