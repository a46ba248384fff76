//! Words, doc comments, names and links of the whole repository. Counts may fall and not grow: whoever makes one smaller
//! lowers the limit here. `cargo xtask tidy` prints every place.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use kubewright_architecture::tree::{TextFile, text_files};
use kubewright_architecture::{
    doc_comments, examples, pages, reference, terms, translations, type_names, words,
};

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
fn the_most_used_methods_have_an_example() {
    assert_at_most(
        "methods without an example",
        &examples::without_example(&sources()),
        0,
    );
}

#[test]
fn doc_comments_of_public_items_are_sentences() {
    let found: Vec<String> = doc_comments::short_docs(&sources())
        .iter()
        .map(|it| format!("{}:{}: {:?}", it.path.display(), it.line, it.text))
        .collect();
    assert_at_most("doc comments of fewer than four words", &found, SHORT_DOCS);
}

/// `cargo test` waits for ever for a test that hangs; a test with this attribute ends and is named.
#[test]
fn tests_of_the_sdk_that_wait_have_a_limit() {
    let files = text_files(&repository(), &["rs"]);
    let of_the_sdk = files.iter().filter(|file| {
        let crates = ["crates/cache", "crates/runtime", "crates/workqueue"];
        crates.iter().any(|it| file.path.starts_with(it))
    });
    let mut limited = 0;
    let mut found = Vec::new();
    for file in of_the_sdk {
        limited += file.text.matches("#[limited::test").count();
        if file.text.contains("#[tokio::test") {
            found.push(format!("{}: write `limited::test`", file.path.display()));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(limited > 200, "only {limited} tests were found");
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

#[test]
fn every_rust_block_of_the_book_is_compiled() {
    let found = text_files(&repository(), &["md"]);
    let sources = text_files(&repository(), &["rs"]);
    let is_page = |page: &&TextFile| page.path.parent().is_some_and(|it| it.ends_with("docs"));
    let blocks = found.iter().filter(is_page);
    let blocks: usize = blocks.map(|page| pages::rust_blocks(&page.text)).sum();
    println!("Rust blocks: {blocks}");
    let left_out = pages::uncompiled_pages(&found, &sources);
    assert!(
        left_out.is_empty(),
        "a line in book/src/lib.rs: {left_out:?}"
    );
}

#[test]
fn every_term_is_explained_on_its_page() {
    let found = text_files(&repository(), &["md"]);
    let table = found.iter().find(|page| page.path.ends_with(terms::TERMS));
    let rows = terms::rows(&table.expect("the page of terms is there").text).len();
    println!("terms: {rows}");
    assert!(rows >= 41, "{rows} terms");
    let missing = terms::unexplained_terms(&found);
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn translations_follow_their_originals() {
    let found = translations::out_of_date(&text_files(&repository(), &["md"]));
    assert!(found.is_empty(), "{found:#?}");
}

/// Files below a folder of the sources, without tests.
fn sources_below(folder: &str) -> Vec<TextFile> {
    let mut files = sources();
    files.retain(|file| file.path.starts_with(folder) && !file.path.ends_with("tests.rs"));
    files
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn reference_lists_what_the_sources_have() {
    let page = read("docs/reference.md");
    let mut expected = reference::flags(&read("crates/kubewright/src/operator/flags.rs"));
    for folder in ["crates/runtime/src", "crates/cache/src"] {
        let prefixes = [
            "controller_runtime_",
            "informer_",
            "rest_client_",
            "leader_election_",
            "kubewright_",
        ];
        for file in sources_below(folder) {
            let is_metric = |name: &String| !name.ends_with('_');
            expected.extend(
                reference::metrics(&file.text, &prefixes)
                    .into_iter()
                    .filter(is_metric),
            );
            expected.extend(reference::annotations(&file.text));
        }
    }
    let controllers = read("crates/runtime/src/metrics/controller.rs");
    let counts = ["reconcile_", "terminal_", "active_", "max_"];
    let counts = reference::metrics(&controllers, &counts).into_iter();
    expected.extend(counts.map(|name| format!("controller_runtime_{name}")));
    let listed = reference::listed(&page);
    let missing: Vec<&String> = expected.difference(&listed).collect();
    assert!(missing.is_empty(), "not in docs/reference.md: {missing:?}");
    let known = |name: &&String| {
        let made_up = [
            "--",
            "controller_runtime_",
            "informer_",
            "rest_client_",
            "leader_",
        ];
        made_up.iter().any(|prefix| name.starts_with(prefix))
    };
    let gone: Vec<&String> = listed.difference(&expected).filter(known).collect();
    assert!(gone.is_empty(), "in docs/reference.md alone: {gone:?}");
}

#[test]
fn reference_lists_the_options_of_attributes() {
    let page = read("docs/reference.md");
    let words: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    for source in ["webhook", "permission"] {
        let options =
            reference::attribute_options(&read(&format!("crates/derive/src/{source}.rs")));
        assert!(options.len() > 5, "{source}: {options:?}");
        let missing: Vec<&String> = options
            .iter()
            .filter(|option| !words.contains(option.as_str()))
            .collect();
        assert!(missing.is_empty(), "{source}: {missing:?}");
    }
}
