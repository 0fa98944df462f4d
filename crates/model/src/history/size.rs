//! Sizes as people write and read them.

/// The units in which sizes are written: those of disks, by thousands.
const UNITS: [(u64, &str); 4] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];

/// Reads a size such as `10 GB` or `500MB`, in bytes.
///
/// # Errors
/// In words, if the text is none.
pub fn read_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is no size, expected a whole number and kB, MB, GB or TB, such as \"10 GB\"");
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (factor, _) = UNITS.into_iter().find(|(_, name)| *name == unit.trim()).ok_or_else(wrong)?;
    number.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// A size as people say it: `10 GB`, `1.5 MB`, `12 B`.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let Some((factor, unit)) = UNITS.into_iter().find(|(factor, _)| bytes >= *factor) else {
        return format!("{bytes} B");
    };
    match (bytes / factor, bytes % factor / (factor / 10)) {
        (whole @ 0..10, tenth @ 1..) => format!("{whole}.{tenth} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_said() {
        for (text, bytes) in
            [("10 GB", 10_000_000_000), ("500MB", 500_000_000), (" 1 kB ", 1000), ("2 TB", 2_000_000_000_000)]
        {
            assert_eq!(read_size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "GB", "10", "-1 GB", "1.5 GB", "0 GB", "10 gb", "99999999999 TB"] {
            assert!(read_size(wrong).unwrap_err().contains("expected a whole number"), "{wrong}");
        }
        let said = [0, 999, 1000, 1500, 12_345_678, 10_000_000_000, 3_000_000_000_000].map(size_text);
        assert_eq!(said, ["0 B", "999 B", "1 kB", "1.5 kB", "12 MB", "10 GB", "3 TB"]);
    }
}
