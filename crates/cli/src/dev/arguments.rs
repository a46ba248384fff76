//! The arguments of the program: what dev gives it, unless the user says otherwise.

/// What dev gives, without the flags that the user gives, and then what the user gives.
pub(super) fn merged(ours: impl IntoIterator<Item = String>, theirs: &[String]) -> Vec<String> {
    let ours = ours.into_iter();
    let mut arguments: Vec<String> = ours
        .filter(|argument| value(theirs, name(argument)).is_none())
        .collect();
    arguments.extend_from_slice(theirs);
    arguments
}

/// The last value of a flag: what is behind `=`, or the next argument.
pub(super) fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let at = arguments
        .iter()
        .rposition(|argument| name(argument) == flag)?;
    match arguments[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => Some(arguments.get(at + 1).map_or("", String::as_str)),
    }
}

fn name(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flag_of_the_user_takes_the_place_of_ours() {
        let ours = || words("--health-probe-bind-address=0 --log-level=info");
        let check = |theirs: &str, expected: &str| {
            assert_eq!(merged(ours(), &words(theirs)), words(expected), "{theirs}");
        };
        check("", "--health-probe-bind-address=0 --log-level=info");
        check(
            "--health-probe-bind-address=:7835",
            "--log-level=info --health-probe-bind-address=:7835",
        );
        check(
            "--log-level debug",
            "--health-probe-bind-address=0 --log-level debug",
        );
        check(
            "--log-levels=x",
            "--health-probe-bind-address=0 --log-level=info --log-levels=x",
        );
    }

    #[test]
    fn value_is_behind_the_sign_or_the_next_word_and_the_last_one_counts() {
        let arguments = words("--a=1 --b 2 --a=3 --c");
        assert_eq!(value(&arguments, "--a"), Some("3"));
        assert_eq!(value(&arguments, "--b"), Some("2"));
        assert_eq!(value(&arguments, "--c"), Some(""));
        assert_eq!(value(&arguments, "--d"), None);
    }
}
