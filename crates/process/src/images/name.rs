//! Names of images as people write them, and as one name.

/// The whole name of an image: with its registry and its tag, or with its digest.
pub(super) fn whole(name: &str) -> String {
    let (name, digest) = match name.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (name, None),
    };
    let (registry, rest) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => ("docker.io", name),
    };
    let (repository, tag) = match rest.rsplit_once(':') {
        Some((repository, tag)) => (repository, tag),
        None => (rest, "latest"),
    };
    let library = if registry == "docker.io" && !repository.contains('/') {
        "library/"
    } else {
        ""
    };
    match digest {
        Some(digest) => format!("{registry}/{library}{repository}@{digest}"),
        None => format!("{registry}/{library}{repository}:{tag}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_mean_what_a_container_engine_takes_them_for() {
        for (name, expected) in [
            ("web", "docker.io/library/web:latest"),
            ("web:1", "docker.io/library/web:1"),
            ("team/web", "docker.io/team/web:latest"),
            ("quay.io/a/b:2", "quay.io/a/b:2"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            ("web@sha256:ab", "docker.io/library/web@sha256:ab"),
        ] {
            assert_eq!(whole(name), expected);
        }
    }
}
