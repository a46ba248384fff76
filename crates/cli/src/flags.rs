//! Flags as the programs of a control plane take them: `--name=value` or `--name value`, any of them more than once.

use std::collections::BTreeMap;

/// The flags of a command line, by name without the dashes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Takes arguments apart. What is neither a flag nor its value is left out: these programs take no other arguments.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut flags = BTreeMap::<String, Vec<String>>::new();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some(flag) = name(&argument) else {
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                // Without a list of all flags nobody knows which of them stand alone: one before another flag does.
                None => (
                    flag,
                    arguments
                        .next_if(|next| self::name(next).is_none())
                        .unwrap_or_else(|| "true".to_owned()),
                ),
            };
            flags.entry(name.to_owned()).or_default().push(value);
        }
        Self(flags)
    }

    /// The last value of a flag, as it wins.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let values = self.0.get(name)?;
        values.last().map(String::as_str).filter(|v| !v.is_empty())
    }

    /// All values of a flag that takes a list, which may be given at once or one by one.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let given = self.0.get(name).into_iter().flatten();
        let parts = given.flat_map(|value| value.split(','));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Whether a flag was given and not turned off.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "false")
    }

    /// The flags that are none of these.
    pub(crate) fn others(&self, known: &[&str]) -> Vec<&str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(|name| !known.contains(name)).collect()
    }
}

/// A flag without its dashes.
fn name(argument: &str) -> Option<&str> {
    let name = argument
        .strip_prefix("--")
        .or_else(|| argument.strip_prefix('-'));
    name.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Flags {
        Flags::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn flags_take_their_value_with_or_without_an_equals_sign() {
        let flags = parse("--secure-port=6443 --bind-address ::1 --allow-privileged --v=4 -h");
        for (name, value) in [
            ("secure-port", Some("6443")),
            ("bind-address", Some("::1")),
            ("allow-privileged", Some("true")),
            ("h", Some("true")),
            ("cert-dir", None),
        ] {
            assert_eq!(flags.value(name), value, "{name}");
        }
    }

    #[test]
    fn the_last_value_wins_and_lists_add_up() {
        let flags = parse("--mode=Node,RBAC --mode=Webhook --port=1 --port=2 --empty=");
        assert_eq!(flags.values("mode"), ["Node", "RBAC", "Webhook"]);
        assert_eq!(flags.value("port"), Some("2"));
        assert_eq!(flags.value("empty"), None);
        assert!(flags.values("nothing").is_empty());
    }

    #[test]
    fn a_flag_is_on_unless_it_says_false() {
        let flags = parse("--a --b=true --c=false");
        assert!(flags.is_on("a") && flags.is_on("b"));
        assert!(!flags.is_on("c") && !flags.is_on("d"));
        assert_eq!(flags.others(&["a", "c"]), ["b"]);
    }
}
