//! The terminal: a picture that is drawn over itself, or plain lines where nobody can draw.

use std::io::Write;

use super::story::{News, Story};
use super::tree::{Line, Mood};

/// Columns that are used at most, so that lines do not wrap on a usual terminal.
const WIDTH: usize = 118;

/// Where the story is shown.
pub(super) struct Screen {
    form: Form,
}

enum Form {
    /// Draws over the last picture, which had so many lines.
    Picture { drawn: usize, last: String },
    /// Prints each piece of news once; these are the numbers that have been printed.
    Lines { said: usize, notes: usize },
}

impl Screen {
    pub(super) fn new(is_terminal: bool) -> Self {
        let form = if is_terminal {
            Form::Picture {
                drawn: 0,
                last: String::new(),
            }
        } else {
            Form::Lines { said: 0, notes: 0 }
        };
        Self { form }
    }

    /// Says something that stays.
    pub(super) fn say(&mut self, text: &str) {
        if let Form::Picture { drawn, last } = &mut self.form {
            // What was drawn stays where it is.
            (*drawn, *last) = (0, String::new());
        }
        print(&format!("{text}\n"));
    }

    /// Shows the story as it is now.
    pub(super) fn show(&mut self, story: &Story) {
        match &mut self.form {
            Form::Lines { said, notes } => {
                let lines = story.notes.iter().skip(*notes).map(String::as_str);
                let news = story.news.iter().skip(*said).map(News::text);
                let text: String = lines.chain(news).map(|line| format!("{line}\n")).collect();
                (*said, *notes) = (story.news.len(), story.notes.len());
                print(&text);
            }
            Form::Picture { drawn, last } => {
                let picture = picture(story);
                if picture == *last {
                    return;
                }
                // Up to the first line of the last picture, and nothing below.
                let back = if *drawn > 0 {
                    format!("\x1b[{drawn}A\x1b[J")
                } else {
                    String::new()
                };
                print(&format!("{back}{picture}"));
                *drawn = picture.lines().count();
                *last = picture;
            }
        }
    }
}

/// A reader that has gone away does not stop the demo.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn picture(story: &Story) -> String {
    let mut text = String::from("\n");
    for note in &story.notes {
        text.push_str(&format!("{}\n", cut(note)));
    }
    for line in &story.lines {
        text.push_str(&object(line));
    }
    for (title, is_it) in [
        (
            "Events",
            (|news| matches!(news, News::Event(_))) as fn(&News) -> bool,
        ),
        ("Reconciles", |news| matches!(news, News::Reconcile(_))),
    ] {
        text.push_str(&format!("\n{}\n", dim(title)));
        for line in story.last(is_it) {
            text.push_str(&format!("{}\n", cut(line)));
        }
    }
    text
}

fn object(line: &Line) -> String {
    let indent = "  ".repeat(line.depth);
    let width = 48usize.saturating_sub(indent.len());
    let name = format!("{indent}{:<width$}", line.name);
    let state = match line.mood {
        Mood::Good => coloured("32", &line.state),
        Mood::Waiting => coloured("33", &line.state),
        Mood::Plain => line.state.clone(),
    };
    format!("{name} {state}\n")
}

fn dim(text: &str) -> String {
    coloured("2", text)
}

fn coloured(code: &str, text: &str) -> String {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        text.to_owned()
    } else {
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A line that fits: what is too long ends in an ellipsis.
fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
