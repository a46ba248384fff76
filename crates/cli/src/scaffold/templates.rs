//! The templates of scaffolded files. They are real files in `templates/`, and part of this program.

use anyhow::Context as _;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// The number of the scaffold that this program writes. It is counted up by the first change of a template after a release;
/// the templates of the release are then kept in `templates/history`, so that `alpha update` knows what it wrote.
pub(crate) const CURRENT: u32 = 2;

/// Texts of templates by name, from files in a folder.
macro_rules! texts {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $folder, $name, ".jinja")))),*]
    };
}

/// The templates of one scaffold: that of this program, or of an earlier release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Templates {
    number: u32,
    /// The oldest Rust that its projects are built with.
    pub(crate) rust_version: &'static str,
    texts: &'static [(&'static str, &'static str)],
}

/// All scaffolds, the oldest first and that of this program last.
const ALL: [Templates; 2] = [
    Templates {
        number: 1,
        rust_version: "1.89",
        texts: texts!("history/1/":
            "project/Cargo.toml",
            "project/Dockerfile",
            "project/Makefile",
            "project/README.md",
            "project/api.rs",
            "project/cargo-config.toml",
            "project/ci.yml",
            "project/controller.rs",
            "project/dockerignore",
            "project/gitignore",
            "project/main.rs",
            "project/overlay.yaml",
            "project/tests.rs",
            "api/controller.rs",
            "api/controller_simulation.rs",
            "api/controller_tests.rs",
            "api/foreign_controller.rs",
            "api/kind.rs",
            "api/webhook.rs",
        ),
    },
    Templates {
        number: CURRENT,
        rust_version: env!("CARGO_PKG_RUST_VERSION"),
        texts: texts!("":
            "project/Cargo.toml",
            "project/Dockerfile",
            "project/Makefile",
            "project/README.md",
            "project/api.rs",
            "project/cargo-config.toml",
            "project/ci.yml",
            "project/controller.rs",
            "project/dockerignore",
            "project/gitignore",
            "project/main.rs",
            "project/overlay.yaml",
            "project/tests.rs",
            "api/controller.rs",
            "api/controller_simulation.rs",
            "api/controller_tests.rs",
            "api/foreign_controller.rs",
            "api/image_controller.rs",
            "api/image_controller_simulation.rs",
            "api/image_controller_tests.rs",
            "api/image_kind.rs",
            "api/kind.rs",
            "api/webhook.rs",
        ),
    },
];

impl Templates {
    /// The templates of this program.
    pub(crate) const fn current() -> Self {
        ALL[ALL.len() - 1]
    }

    /// The templates of a scaffold that this program knows.
    pub(crate) fn of(number: u32) -> Option<Self> {
        ALL.into_iter().find(|it| it.number == number)
    }

    /// Whether this scaffold has a template.
    pub(crate) fn has(self, name: &str) -> bool {
        self.texts.iter().any(|(known, _)| *known == name)
    }

    /// The text of a template with these values. One that came later is taken from the first scaffold that has it: nothing
    /// older can have been written.
    ///
    /// # Errors
    /// When a template names a value that it is not given, which tests find.
    pub(crate) fn render(self, name: &str, values: impl Serialize) -> anyhow::Result<String> {
        let mut later = ALL.iter().filter(|it| it.number >= self.number);
        let found = later.find_map(|it| it.texts.iter().find(|(known, _)| *known == name));
        let (_, text) = found.with_context(|| format!("there is no template {name}"))?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build()?;
        environment.set_syntax(syntax);
        environment
            .render_str(text, Serde(values))
            .with_context(|| format!("the template {name} cannot be filled in"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        let mut environment = Environment::new();
        for (name, text) in ALL.iter().flat_map(|templates| templates.texts) {
            let read = environment.add_template(name, text);
            assert!(read.is_ok(), "{name}: {read:?}");
            assert!(text.ends_with('\n'), "{name} ends with a line");
        }
    }

    #[test]
    fn scaffolds_are_counted_and_the_last_is_that_of_this_program() {
        let numbers: Vec<u32> = ALL.iter().map(|templates| templates.number).collect();
        assert_eq!(numbers, (1..=CURRENT).collect::<Vec<_>>());
        assert!(Templates::of(CURRENT + 1).is_none());
        let first = Templates::of(1).expect("it is kept");
        assert!(first.has("api/kind.rs") && !first.has("api/image_kind.rs"));
        assert!(Templates::current().has("api/image_kind.rs"));
    }
}
