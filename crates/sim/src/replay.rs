//! Which run is to be repeated: what the variable `KUBEWRIGHT_REPLAY` asks for.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::identity::{escape, unescape};

/// The variable that repeats one run.
pub(crate) const REPLAY: &str = "KUBEWRIGHT_REPLAY";
/// The variable that names a file for the names of all campaigns and walks that were asked. A test cannot see that no other has
/// the run that is to be repeated; whoever started them all can.
const CAMPAIGNS: &str = "KUBEWRIGHT_SIM_CAMPAIGNS";

/// What a campaign or a walk has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All that it has.
    Everything,
    /// Nothing: the run is one of the campaign of this name.
    Other(String),
    /// The run of this token, which the name is no part of.
    One(String),
}

/// What the environment asks of the campaign of this name.
///
/// # Panics
/// When what it asks for is not a token.
pub(crate) fn asked(name: &str) -> Asked {
    if let Some(path) = std::env::var_os(CAMPAIGNS) {
        let noted = note(path.as_ref(), name);
        noted.unwrap_or_else(|error| panic!("{CAMPAIGNS}: {error}"));
    }
    let token = std::env::var(REPLAY).unwrap_or_default();
    asked_by(&token, name)
}

fn asked_by(token: &str, name: &str) -> Asked {
    if token.is_empty() {
        return Asked::Everything;
    }
    let (of, run) = token
        .split_once(':')
        .unwrap_or_else(|| panic!("{REPLAY}: {token:?} is not a token, which is NAME:PLAN"));
    let of = unescape(of);
    if of == name {
        Asked::One(run.to_owned())
    } else {
        Asked::Other(of)
    }
}

fn note(path: &Path, name: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // As tokens begin with it.
    file.write_all(format!("{}\n", escape(name)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_for_the_campaign_that_it_begins_with() {
        assert_eq!(asked_by("", "page"), Asked::Everything);
        let one = Asked::One("crash-after:x".to_owned());
        assert_eq!(asked_by("page:crash-after:x", "page"), one);
        let other = Asked::Other("page".to_owned());
        assert_eq!(asked_by("page:crash-after:x", "pages"), other);
    }

    #[test]
    #[should_panic(expected = "\"page\" is not a token, which is NAME:PLAN")]
    fn text_without_a_plan_is_not_taken_for_a_whole_campaign() {
        asked_by("page", "page");
    }

    #[test]
    fn names_are_noted_one_below_the_other() {
        let directory = tempfile::tempdir().expect("there is room");
        let file = directory.path().join("campaigns");
        note(&file, "page").expect("it can be written");
        note(&file, "page walk").expect("it can be written");
        let noted = std::fs::read_to_string(file).expect("it is there");
        assert_eq!(noted, "page\npage%20walk\n");
    }
}
