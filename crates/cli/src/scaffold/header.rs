//! The license header of a project: kept in a file, and put at the top of Rust files that are created.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;

use super::plan::read_text;

/// Where the header is kept. People may write what they like into it.
pub(crate) const FILE: &str = "hack/boilerplate.rs.txt";

const APACHE: &str = "
Licensed under the Apache License, Version 2.0 (the \"License\");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an \"AS IS\" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
";

/// What Rust files begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum License {
    /// the owner and the Apache License 2.0
    Apache2,
    /// the owner, without a license
    Copyright,
    /// no header at all
    None,
}

/// The header that a command is asked for.
#[derive(Debug, Args, Clone)]
pub(crate) struct Licensing {
    /// What Rust files that are created begin with; it is kept in hack/boilerplate.rs.txt
    #[arg(long, value_enum)]
    license: Option<License>,

    /// Take the license header from this file: comments of Rust
    #[arg(long, value_name = "FILE", conflicts_with = "license")]
    license_file: Option<PathBuf>,

    /// Whose the code is, for the license header of --license
    #[arg(long, value_name = "NAME", requires = "license")]
    owner: Option<String>,
}

/// What becomes of the header of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Header {
    /// Nobody asked for a change: the header is kept.
    Kept,
    /// Files have no header from now on.
    Gone,
    /// Files begin with this header from now on.
    New(String),
}

impl Licensing {
    /// What is asked for.
    ///
    /// # Errors
    /// When the file of the header cannot be read, or would not compile.
    pub(crate) fn header(&self) -> anyhow::Result<Header> {
        if let Some(file) = &self.license_file {
            let text = read_text(file)?;
            let text = text.with_context(|| format!("{} does not exist", file.display()))?;
            if !is_comment(&text) {
                bail!(
                    "{} cannot stand at the top of a Rust file: begin each line with //, or put it between /* and */",
                    file.display()
                );
            }
            return Ok(Header::New(text.trim().to_owned() + "\n"));
        }
        Ok(match (self.license, self.text()) {
            (None, _) => Header::Kept,
            (Some(_), None) => Header::Gone,
            (Some(_), Some(text)) => Header::New(text),
        })
    }

    /// The text of a license that is known. Comments, so that it can stand before the text of a file.
    fn text(&self) -> Option<String> {
        let year = Timestamp::now().to_zoned(TimeZone::UTC).year();
        let owner = self.owner.as_deref().map(str::trim);
        let whose = match owner.filter(|owner| !owner.is_empty()) {
            Some(owner) => format!("Copyright {year} {owner}."),
            None => format!("Copyright {year}."),
        };
        match self.license? {
            License::None => None,
            License::Copyright => Some(comment(&whose)),
            License::Apache2 => Some(comment(&format!("{whose}\n{APACHE}"))),
        }
    }
}

/// Whether a text is comments about the file as such, and nothing that documents what follows.
fn is_comment(text: &str) -> bool {
    let text = text.trim();
    let inside = text
        .strip_prefix("/*")
        .and_then(|text| text.strip_suffix("*/"));
    if let Some(inside) = inside {
        return !inside.starts_with(['!', '*']) && !inside.contains("*/");
    }
    let plain = |line: &str| line.starts_with("//") && !line.starts_with("//!");
    !text.is_empty() && text.lines().all(|line| line.is_empty() || plain(line))
}

/// A text as lines of comments.
fn comment(text: &str) -> String {
    let line = |line: &str| format!("// {line}").trim_end().to_owned() + "\n";
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_says_whose_it_is_and_under_which_license() {
        let header = |license, owner: Option<&str>| {
            let licensing = Licensing {
                license,
                license_file: None,
                owner: owner.map(str::to_owned),
            };
            licensing.text()
        };
        assert_eq!(header(None, None), None);
        assert_eq!(header(Some(License::None), Some("A")), None);
        let year = Timestamp::now().to_zoned(TimeZone::UTC).year();
        let short = format!("// Copyright {year} A B.\n");
        assert_eq!(header(Some(License::Copyright), Some("A B")), Some(short));
        let long = header(Some(License::Apache2), None).expect("there is one");
        assert!(long.starts_with(&format!("// Copyright {year}.\n//\n// Licensed")));
        assert!(is_comment(&long), "{long}");
    }

    #[test]
    fn only_comments_can_stand_at_the_top() {
        for (text, expected) in [
            ("/*\nMine.\n*/\n", true),
            ("// Mine.\n\n// All of it.\n", true),
            ("/* a */ fn main() {} /* b */", false),
            ("//! The manager.\n", false),
            ("Mine.\n", false),
            ("", false),
        ] {
            assert_eq!(is_comment(text), expected, "{text:?}");
        }
    }
}
