//! Words, doc comments, names and links of the whole repository. Counts may fall and not grow: whoever makes one smaller
//! lowers the limit here. `cargo xtask tidy` prints every place.

use std::path::PathBuf;

use kubewright_architecture::tree::{TextFile, text_files};
use kubewright_architecture::{doc_comments, pages, type_names, words};

/// What is still there, at most.
const BANNED_WORDS: usize = 0;
const SHORT_DOCS: usize = 0;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rust sources of the crates, without their tests.
fn sources() -> Vec<TextFile> {
    let mut files = text_files(&repository(), &["rs"]);
    files.retain(|file| {
        let path = file.path.to_string_lossy();
        path.starts_with("crates/") && !path.contains("/tests") && !path.contains("/benches")
    });
    files
}

fn assert_at_most(what: &str, found: &[String], limit: usize) {
    println!("{what}: {}", found.len());
    let shown = found.iter().rev().take(20).cloned().collect::<Vec<_>>();
    assert!(
        found.len() <= limit,
        "{what}: {} are more than {limit}; among them:\n{}",
        found.len(),
        shown.join("\n")
    );
}

#[test]
fn banned_words_do_not_spread() {
    let found: Vec<String> = words::banned_words(&text_files(&repository(), &["rs", "md"]))
        .iter()
        .map(|it| {
            let (place, row) = (it.path.display(), it.banned);
            format!(
                "{place}:{}: {:?}: write {}",
                it.line, row.phrase, row.instead
            )
        })
        .collect();
    assert_at_most("words of our own", &found, BANNED_WORDS);
}

#[test]
fn doc_comments_of_public_items_are_sentences() {
    let found: Vec<String> = doc_comments::short_docs(&sources())
        .iter()
        .map(|it| format!("{}:{}: {:?}", it.path.display(), it.line, it.text))
        .collect();
    assert_at_most("doc comments of fewer than four words", &found, SHORT_DOCS);
}

#[test]
fn public_type_names_exist_once_in_the_sdk() {
    let repeated = type_names::repeated_types(&sources());
    let new = repeated.iter().filter(|name| !name.is_known());
    let new: Vec<String> = new.map(ToString::to_string).collect();
    assert!(new.is_empty(), "{new:#?}");
    let gone = type_names::no_longer_repeated(&repeated);
    assert!(
        gone.is_empty(),
        "take them from the list of known names: {gone:?}"
    );
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_listed() {
    let found = text_files(&repository(), &["md"]);
    let dead = pages::dead_links(&found, |path| repository().join(path).exists());
    assert!(dead.is_empty(), "{dead:#?}");
    let unlisted = pages::unlisted_pages(&found);
    assert!(
        unlisted.is_empty(),
        "not in {}: {unlisted:?}",
        pages::CONTENTS
    );
}
