//! Everything that reads bytes from outside, each as a function that must survive every input.
//!
//! A target says what it made of an input, in words: another answer is another path, and inputs that find one are kept.
//! What has to hold (what was written reads as the same) is asserted.

mod cel;
mod definitions;
mod documents;
mod patches;
mod protobuf;
mod requests;
mod reviews;
mod selectors;
mod storage;
mod streams;
mod text;

use anyhow::{Result, bail};

/// What was made of an input.
pub(crate) struct Verdict(pub(crate) String);

/// Reads one input.
pub(crate) type Read = Box<dyn Fn(&[u8]) -> Verdict + Send>;

/// One of them.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    make: fn() -> Read,
}

impl Verdict {
    /// The input was taken; this is what it was.
    fn accepted(what: impl std::fmt::Display) -> Self {
        Self(format!("accepted {what}"))
    }

    /// The input was refused; this is why.
    fn refused(why: impl std::fmt::Display) -> Self {
        Self(format!("refused {why}"))
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.0.starts_with("accepted")
    }
}

impl Target {
    /// All of them, in the order in which they are run.
    pub(crate) const ALL: &[Self] = &[
        Self {
            name: "json",
            make: || Box::new(documents::json),
        },
        Self {
            name: "yaml",
            make: || Box::new(documents::yaml),
        },
        Self {
            name: "protobuf",
            make: || Box::new(protobuf::read),
        },
        Self {
            name: "label-selector",
            make: || Box::new(selectors::label),
        },
        Self {
            name: "field-selector",
            make: || Box::new(selectors::field),
        },
        Self {
            name: "json-patch",
            make: || Box::new(patches::json),
        },
        Self {
            name: "merge-patch",
            make: || Box::new(patches::merge),
        },
        Self {
            name: "strategic-patch",
            make: || Box::new(patches::strategic),
        },
        Self {
            name: "apply",
            make: || Box::new(patches::apply),
        },
        Self {
            name: "cel",
            make: || Box::new(cel::read),
        },
        Self {
            name: "definition",
            make: || Box::new(definitions::read),
        },
        Self {
            name: "quantity",
            make: || Box::new(text::quantity),
        },
        Self {
            name: "json-path",
            make: || Box::new(text::json_path),
        },
        Self {
            name: "continue",
            make: requests::continue_token,
        },
        Self {
            name: "query",
            make: requests::query,
        },
        Self {
            name: "create",
            make: requests::create,
        },
        Self {
            name: "review",
            make: reviews::read,
        },
        Self {
            name: "log",
            make: storage::log,
        },
        Self {
            name: "websocket-watch",
            make: streams::watch,
        },
        Self {
            name: "websocket-exec",
            make: streams::exec,
        },
        Self {
            name: "spdy-exec",
            make: streams::spdy_exec,
        },
        Self {
            name: "spdy-forward",
            make: streams::spdy_forward,
        },
    ];

    /// The target of a name.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        let Some(target) = Self::ALL.iter().find(|target| target.name == name) else {
            let names: Vec<&str> = Self::ALL.iter().map(|target| target.name).collect();
            bail!(
                "there is no target {name:?}; there are {}",
                names.join(", ")
            );
        };
        Ok(target)
    }

    /// A reader that remembers nothing of earlier inputs.
    pub(crate) fn reader(&self) -> Read {
        (self.make)()
    }
}

/// The first characters of a text, for answers.
fn start(text: &str) -> &str {
    text.char_indices()
        .nth(120)
        .map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;
    use std::path::Path;

    #[test]
    fn every_target_takes_something_of_its_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for target in Target::ALL {
            let corpus = Corpus::read(&root.join(target.name)).expect("a corpus for each target");
            let read = target.reader();
            let taken = corpus
                .seeds()
                .iter()
                .filter(|seed| read(seed).is_accepted());
            assert!(taken.count() > 0, "{}", target.name);
        }
    }

    #[test]
    fn every_target_survives_what_is_nothing_to_it() {
        for target in Target::ALL {
            let read = target.reader();
            for input in [
                &b""[..],
                b"\0",
                b"\xff\xfe",
                b"null",
                b"[]",
                b"{}",
                b"k8s\0",
            ] {
                let _ = read(input);
            }
        }
    }
}
