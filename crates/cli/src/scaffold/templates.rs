//! The templates of scaffolded files. They are real files in `templates/`, and part of this program.

use anyhow::Context as _;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// All templates, by name.
const ALL: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../../templates/project/Cargo.toml.jinja"),
    ),
    (
        "Dockerfile",
        include_str!("../../templates/project/Dockerfile.jinja"),
    ),
    (
        "Makefile",
        include_str!("../../templates/project/Makefile.jinja"),
    ),
    (
        "README.md",
        include_str!("../../templates/project/README.md.jinja"),
    ),
    (
        "api.rs",
        include_str!("../../templates/project/api.rs.jinja"),
    ),
    (
        "cargo-config.toml",
        include_str!("../../templates/project/cargo-config.toml.jinja"),
    ),
    (
        "ci.yml",
        include_str!("../../templates/project/ci.yml.jinja"),
    ),
    (
        "controller.rs",
        include_str!("../../templates/project/controller.rs.jinja"),
    ),
    (
        "dockerignore",
        include_str!("../../templates/project/dockerignore.jinja"),
    ),
    (
        "gitignore",
        include_str!("../../templates/project/gitignore.jinja"),
    ),
    (
        "main.rs",
        include_str!("../../templates/project/main.rs.jinja"),
    ),
    (
        "overlay.yaml",
        include_str!("../../templates/project/overlay.yaml.jinja"),
    ),
    (
        "tests.rs",
        include_str!("../../templates/project/tests.rs.jinja"),
    ),
    (
        "api/controller.rs",
        include_str!("../../templates/api/controller.rs.jinja"),
    ),
    (
        "api/controller_simulation.rs",
        include_str!("../../templates/api/controller_simulation.rs.jinja"),
    ),
    (
        "api/controller_tests.rs",
        include_str!("../../templates/api/controller_tests.rs.jinja"),
    ),
    (
        "api/foreign_controller.rs",
        include_str!("../../templates/api/foreign_controller.rs.jinja"),
    ),
    (
        "api/kind.rs",
        include_str!("../../templates/api/kind.rs.jinja"),
    ),
    (
        "api/webhook.rs",
        include_str!("../../templates/api/webhook.rs.jinja"),
    ),
];

/// The text of a template with these values.
///
/// # Errors
/// When a template names a value that it is not given, which tests find.
pub(crate) fn render(name: &str, values: impl Serialize) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    for (known, text) in ALL {
        environment.add_template(known, text)?;
    }
    let template = environment.get_template(name)?;
    template
        .render(Serde(values))
        .with_context(|| format!("the template {name} cannot be filled in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        let mut environment = Environment::new();
        for (name, text) in ALL {
            let read = environment.add_template(name, text);
            assert!(read.is_ok(), "{name}: {read:?}");
            assert!(text.ends_with('\n'), "{name} ends with a line");
        }
    }
}
