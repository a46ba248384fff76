//! Reads the catalog's lines: `group/version plural Kind scope [word]...`. The data file explains the words.

use super::{Resource, Scope, Subresource, Verb};

/// Verbs of a subresource whose line does not name any.
const SUBRESOURCE_VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// A line of a catalog that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ParseError {
    /// Number of the line, from one.
    pub line: usize,
    /// What is wrong with it.
    pub problem: LineError,
}

/// What is wrong with a line of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line ends before it names this.
    #[error("the {0} is missing")]
    Missing(&'static str),
    /// The word after the scope starts with nothing that we know.
    #[error("unknown word {0:?}")]
    Word(String),
    /// The scope is neither `namespaced` nor `cluster`.
    #[error("unknown scope {0:?}")]
    Scope(String),
    /// The API has no verb of this name.
    #[error("unknown verb {0:?}")]
    Verb(String),
}

/// Reads a catalog. Empty lines and lines that start with `#` say nothing.
pub(crate) fn parse(text: &str) -> Result<Vec<Resource>, ParseError> {
    let mut resources = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let resource = resource(line).map_err(|problem| ParseError {
            line: at + 1,
            problem,
        })?;
        resources.push(resource);
    }
    Ok(resources)
}

fn resource(line: &str) -> Result<Resource, LineError> {
    let mut words = line.split_whitespace();
    let mut next = |what| words.next().ok_or(LineError::Missing(what));
    let (group, version) = group_version(next("group and version")?);
    let plural = next("plural")?;
    let kind = next("kind")?;
    let scope = scope(next("scope")?)?;
    let mut resource = Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        scope,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Verb::ALL.to_vec(),
        subresources: Vec::new(),
    };
    for word in words {
        add_word(&mut resource, word)?;
    }
    Ok(resource)
}

fn add_word(resource: &mut Resource, word: &str) -> Result<(), LineError> {
    if let Some(rest) = word.strip_prefix('/') {
        let subresource = subresource(resource, rest)?;
        resource.subresources.push(subresource);
        return Ok(());
    }
    match word.split_once(':') {
        Some(("short", names)) => resource.short_names = names.split(',').map(Into::into).collect(),
        Some(("in", names)) => resource.categories = names.split(',').map(Into::into).collect(),
        Some(("verbs", names)) => resource.verbs = verbs(names)?,
        _ => return Err(LineError::Word(word.to_owned())),
    }
    Ok(())
}

/// `name[=kind][:verbs]`
fn subresource(parent: &Resource, text: &str) -> Result<Subresource, LineError> {
    let (text, named_verbs) = match text.split_once(':') {
        Some((text, names)) => (text, verbs(names)?),
        None => (text, SUBRESOURCE_VERBS.to_vec()),
    };
    let (name, kind) = text.split_once('=').unwrap_or((text, &parent.kind));
    let (group, version, kind) = match kind.rsplit_once('/') {
        Some((api_version, kind)) => {
            let (group, version) = group_version(api_version);
            (group, version, kind)
        }
        None => (&*parent.group, &*parent.version, kind),
    };
    Ok(Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: named_verbs,
    })
}

fn group_version(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("", text))
}

fn scope(text: &str) -> Result<Scope, LineError> {
    match text {
        "namespaced" => Ok(Scope::Namespaced),
        "cluster" => Ok(Scope::Cluster),
        _ => Err(LineError::Scope(text.to_owned())),
    }
}

fn verbs(names: &str) -> Result<Vec<Verb>, LineError> {
    names
        .split(',')
        .map(|name| Verb::named(name).ok_or_else(|| LineError::Verb(name.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all_about_a_resource() {
        let parsed = parse(
            "g.io/v1 foos Foo namespaced short:f,fo in:all /status /scale=autoscaling/v1/Scale:get\n",
        );
        let foo = &parsed.expect("the line is well-formed")[0];
        assert_eq!((&*foo.group, &*foo.version), ("g.io", "v1"));
        assert_eq!((&*foo.singular, &*foo.list_kind), ("foo", "FooList"));
        assert_eq!(foo.short_names, ["f".into(), "fo".into()]);
        assert_eq!(foo.verbs, Verb::ALL);
        let scale = foo.subresource("scale").expect("it has a scale");
        assert_eq!((&*scale.group, &*scale.kind), ("autoscaling", "Scale"));
        assert_eq!(scale.verbs, [Verb::Get]);
        let status = foo.subresource("status").expect("it has a status");
        assert_eq!((&*status.group, &*status.kind), ("g.io", "Foo"));
        assert_eq!(status.verbs, SUBRESOURCE_VERBS);
    }

    #[test]
    fn errors_point_at_the_line() {
        for (text, message) in [
            ("v1", "line 1: the plural is missing"),
            ("# why\n\nv1 pods", "line 3: the kind is missing"),
            ("v1 pods Pod", "line 1: the scope is missing"),
            ("v1 pods Pod global", "line 1: unknown scope \"global\""),
            (
                "v1 a A cluster\nv1 b B cluster verbs:get,fly",
                "line 2: unknown verb \"fly\"",
            ),
            (
                "v1 a A cluster /status:jump",
                "line 1: unknown verb \"jump\"",
            ),
            (
                "v1 a A cluster colour:red",
                "line 1: unknown word \"colour:red\"",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }
}
