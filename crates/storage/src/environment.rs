//! Variables of the environment.

/// A variable that is set and not empty.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The first variable of several that is.
pub(crate) fn first(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(name))
}
