//! `cargo xtask tidy`: every word of our own, every doc comment that says too little, every dead link, with its place.

use std::process::ExitCode;

use kubewright_architecture::tree::text_files;
use kubewright_architecture::{doc_comments, pages, words};

use crate::workspace;

/// List words that we do not write, doc comments of fewer than four words, dead links and unlisted pages.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only files whose path begins so, such as `crates/runtime`
    #[arg(long, default_value = "")]
    under: String,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let root = workspace::root();
    let mut files = text_files(&root, &["rs", "md"]);
    let all_pages: Vec<_> = text_files(&root, &["md"]);
    files.retain(|file| file.path.starts_with(&arguments.under));
    let mut findings = Vec::new();
    for it in words::banned_words(&files) {
        let place = it.path.display();
        let (phrase, instead) = (it.banned.phrase, it.banned.instead);
        findings.push(format!(
            "{place}:{}: \"{phrase}\": write {instead}",
            it.line
        ));
    }
    files.retain(|file| file.path.starts_with("crates"));
    for it in doc_comments::short_docs(&files) {
        let place = it.path.display();
        findings.push(format!(
            "{place}:{}: \"{}\" says too little",
            it.line, it.text
        ));
    }
    for it in pages::dead_links(&all_pages, |path| root.join(path).exists()) {
        let place = it.page.display();
        findings.push(format!("{place}:{}: {} does not exist", it.line, it.target));
    }
    for page in pages::unlisted_pages(&all_pages) {
        findings.push(format!(
            "{}: not listed in {}",
            page.display(),
            pages::CONTENTS
        ));
    }
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
