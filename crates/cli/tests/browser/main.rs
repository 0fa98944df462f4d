//! Pages as people meet them: in a real browser, on a real server.

mod browser_real;
mod driver;
mod house;
mod past;
mod scene;
#[path = "../support/mod.rs"]
mod support;
mod world;
