//! Variables of the environment.

/// The value of a variable that is set and not empty.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The value of the first of several variables that is set and not empty.
pub(crate) fn first(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(name))
}
