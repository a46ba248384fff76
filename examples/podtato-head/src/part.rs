//! The six parts of a podtato head.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of the figure. Each has a Deployment and a Service of its own.
#[derive(
    Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The hat on top.
    Hat,
    /// The arm on the left of the picture.
    LeftArm,
    /// The arm on the right of the picture.
    RightArm,
    /// The leg on the left of the picture.
    LeftLeg,
    /// The leg on the right of the picture.
    RightLeg,
    /// The body, and the page that puts the figure together. It needs all the others.
    Entry,
}

impl Part {
    /// All parts in the order in which they are upgraded: the entry is last, because it shows the others.
    pub const ALL: [Self; 6] = [
        Self::Hat,
        Self::LeftArm,
        Self::RightArm,
        Self::LeftLeg,
        Self::RightLeg,
        Self::Entry,
    ];

    /// The name of the part as it is written in specs, labels and addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hat => "hat",
            Self::LeftArm => "left-arm",
            Self::RightArm => "right-arm",
            Self::LeftLeg => "left-leg",
            Self::RightLeg => "right-leg",
            Self::Entry => "entry",
        }
    }

    /// Finds a part by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
