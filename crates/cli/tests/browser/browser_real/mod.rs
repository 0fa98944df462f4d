//! All of these need `servers/run with chromium -- cargo test -p kelos-cli --test browser -- --ignored real::`.

mod access;
mod activity;
mod board;
mod first_hour;
mod flows;
mod injection;
mod jobs;
mod keys;
mod loss;
mod pages;
mod pictures;
mod quickstart;
mod scale;
mod schedules;
mod sign_in;
mod slot;
