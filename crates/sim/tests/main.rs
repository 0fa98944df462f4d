//! Simulations: seeds that must hold, and mistakes that must be found.

mod faulty_store;
mod nodes;
mod planted;
mod seeds;
