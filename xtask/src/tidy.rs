//! `cargo xtask tidy`: every word of our own, every doc comment that says too little, every name that exists twice and every
//! dead link, with its place.

use std::path::Path;
use std::process::ExitCode;

use kubewright_architecture::tree::{TextFile, text_files};
use kubewright_architecture::{doc_comments, pages, terms, translations, type_names, words};

use crate::workspace;

/// List words that we do not write, doc comments of fewer than four words, public types of the SDK whose name exists twice, dead
/// links, unlisted pages, terms that their page does not have, and translations that are out of date.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only files whose path begins so, such as `crates/runtime`
    #[arg(long, default_value = "")]
    under: String,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let root = workspace::root();
    let files = text_files(&root, &["rs", "md"]);
    for known in type_names::repeated_types(&files) {
        if known.is_known() {
            println!("known: {known}");
        }
    }
    let findings = findings(&files, &arguments.under, |path| root.join(path).exists());
    for finding in &findings {
        println!("{finding}");
    }
    println!("{} findings", findings.len());
    if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Everything that is wrong, with its place. Words and doc comments are read in files whose path begins with `under`; names
/// and links are about the whole repository.
fn findings(files: &[TextFile], under: &str, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let chosen = files.iter().filter(|file| file.path.starts_with(under));
    let chosen: Vec<TextFile> = chosen.cloned().collect();
    let crates = chosen.iter().filter(|file| file.is_source_of_a_crate());
    let crates: Vec<TextFile> = crates.cloned().collect();
    let documents = files.iter().filter(|file| file.has_extension("md"));
    let documents: Vec<TextFile> = documents.cloned().collect();
    let mut findings = word_findings(&chosen);
    findings.extend(doc_findings(&crates));
    findings.extend(name_findings(files));
    findings.extend(page_findings(&documents, exists));
    findings
}

fn word_findings(files: &[TextFile]) -> Vec<String> {
    let found = words::banned_words(files).into_iter().map(|it| {
        let (place, row) = (it.path.display(), it.banned);
        format!(
            "{place}:{}: \"{}\": write {}",
            it.line, row.phrase, row.instead
        )
    });
    found.collect()
}

fn doc_findings(files: &[TextFile]) -> Vec<String> {
    let found = doc_comments::short_docs(files).into_iter().map(|it| {
        let place = it.path.display();
        format!("{place}:{}: \"{}\" says too little", it.line, it.text)
    });
    found.collect()
}

fn name_findings(files: &[TextFile]) -> Vec<String> {
    let repeated = type_names::repeated_types(files);
    let new = repeated.iter().filter(|it| !it.is_known());
    new.map(ToString::to_string).collect()
}

fn page_findings(documents: &[TextFile], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let dead = pages::dead_links(documents, exists).into_iter().map(|it| {
        let place = it.page.display();
        format!("{place}:{}: {} does not exist", it.line, it.target)
    });
    let unlisted = pages::unlisted_pages(documents).into_iter();
    let unlisted =
        unlisted.map(|page| format!("{}: not listed in {}", page.display(), pages::CONTENTS));
    let unexplained = terms::unexplained_terms(documents).into_iter();
    let unexplained = unexplained.map(|it| {
        let (list, page) = (terms::TERMS, it.page.display());
        format!("{list}: {} does not occur in {page}", it.term)
    });
    let outdated = translations::out_of_date(documents).into_iter();
    let outdated = outdated.map(|it| {
        let page = it.page.display();
        format!("{page}: section {:?}: {}", it.section, it.problem)
    });
    let pages = dead.chain(unlisted);
    pages.chain(unexplained).chain(outdated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file adds to a repository that is tidy without it.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let tidy = [
            file(pages::CONTENTS, "- [Start](start.md)\n"),
            file("docs/start.md", "# Start\n"),
            file(
                "crates/cache/src/key.rs",
                "/// The key of an object.\npub struct Key;\n",
            ),
        ];
        assert_eq!(findings(&tidy, "", |_| false), Vec::<String>::new());
        let mut files = Vec::from(tidy);
        files.push(file(path, text));
        assert_eq!(findings(&files, "", |_| false), expected, "{text}");
    }

    #[test]
    fn each_rule_has_a_file_that_breaks_it() {
        let words::BannedPhrase { phrase, instead } = words::BANNED[0];
        check(
            "crates/cli/src/a.rs",
            &format!("// {phrase}"),
            &[&format!(
                "crates/cli/src/a.rs:1: \"{phrase}\": write {instead}"
            )],
        );
        check(
            "crates/cli/src/a.rs",
            "/// The name.\npub name: String,",
            &["crates/cli/src/a.rs:2: \"The name.\" says too little"],
        );
        check(
            "crates/webhook/src/a.rs",
            "pub struct Key;",
            &["Key is defined in crates/cache/src/key.rs:2 and crates/webhook/src/a.rs:1"],
        );
        check(
            "SECURITY.md",
            "[gone](gone.md)",
            &["SECURITY.md:1: gone.md does not exist"],
        );
        check(
            "docs/new.md",
            "# New",
            &["docs/new.md: not listed in docs/SUMMARY.md"],
        );
    }

    fn file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn terms_without_a_page_and_translations_out_of_date_are_findings() {
        let files = [
            file(
                pages::CONTENTS,
                "- [Start](start.md)\n- [Terms](terms.md)\n",
            ),
            file(terms::TERMS, "| hot loop | [Start](start.md) |"),
            file("docs/start.md", "# Start\n"),
        ];
        let missing = "docs/terms.md: hot loop does not occur in docs/start.md";
        assert_eq!(findings(&files, "", |_| false), [missing]);
        let files = [
            file(pages::CONTENTS, ""),
            file("README.md", "# A\n"),
            file("README.zh.md", "<!-- section: A; 0 -->\n# A\n"),
        ];
        let found = findings(&files, "", |_| false);
        assert!(found[0].starts_with("README.zh.md: section \"A\": changed since"));
        assert!(found[1].starts_with("README.ru.md: section \"A\": not translated"));
    }
}
