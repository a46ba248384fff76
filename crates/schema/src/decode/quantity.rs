//! The syntax of resource quantities.

/// What Go says when a text is no quantity.
const SYNTAX: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// Checks a quantity and keeps its text.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let one_point = digits.matches('.').count() <= 1;
    if !one_point || !digits.contains(|c: char| c.is_ascii_digit()) {
        return Err(SYNTAX.to_owned());
    }
    if SUFFIXES.contains(&suffix) || is_exponent(suffix) {
        return Ok(text.to_owned());
    }
    Err("unable to parse quantity's suffix".to_owned())
}

fn is_exponent(suffix: &str) -> bool {
    suffix
        .strip_prefix(['e', 'E'])
        .map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest))
        .is_some_and(|digits| {
            (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
        })
}
