//! Workflows that are keyed by job ids on the pages: their identifiers and dependencies, and their jobs by two of the
//! identifiers.

mod board;
mod definition;
mod matrix;
mod submit;

pub(super) use board::{Section, below, page, section};
pub(super) use definition::facts;
pub(super) use matrix::{MatrixPage, MatrixView, read};
pub(super) use submit::{Submit, form, submit};
