//! Scripts and files of definitions, from text to definitions or problems.

mod apps;
mod builder;
mod calendars;
mod celos;
mod celos_random;
mod codes;
mod definitions;
mod events;
mod flows;
mod hostile_folders;
mod parameters;
mod reload;
mod sandbox;
mod support;
mod test_files;
mod types;
