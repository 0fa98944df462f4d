//! The project that `kelos new --rust` writes: its tests pass.

#[allow(non_snake_case, unreachable_pub, reason = "it stands for the library of the project, as the template has it")]
#[path = "../../cli/src/new/lib.rs"]
mod LIBRARY;

include!("../../cli/src/new/week.rs");
