//! Where the story is shown: a picture that is drawn over itself, or plain lines where nobody can draw.

use super::story::{News, Story};
use super::tree::{Line, Mood};
use crate::picture::{self, Colour, Painted, Picture, Size};

/// Lines of events and of reconciles that are shown at most.
const NEWS: usize = 6;
/// Lines of them that are shown at least.
const LEAST: usize = 2;
/// Rows of a window that has no room for them.
const SMALL: usize = 12;

/// Where the story is shown.
pub(super) struct Screen {
    form: Form,
}

enum Form {
    Picture(Picture),
    /// Prints each piece of news once; these are the numbers that have been printed.
    Lines {
        said: usize,
        notes: usize,
    },
}

impl Screen {
    pub(super) fn new(is_terminal: bool) -> Self {
        let form = if is_terminal {
            Form::Picture(Picture::default())
        } else {
            Form::Lines { said: 0, notes: 0 }
        };
        Self { form }
    }

    /// Says something that stays.
    pub(super) fn say(&mut self, text: &str) {
        if let Form::Picture(picture) = &mut self.form {
            picture.leave();
        }
        picture::print(&format!("{text}\n"));
    }

    /// Shows the story as it is now.
    pub(super) fn show(&mut self, story: &Story) {
        match &mut self.form {
            Form::Lines { said, notes } => {
                let lines = story.notes.iter().skip(*notes).map(String::as_str);
                let news = story.news.iter().skip(*said).map(News::text);
                let text: String = lines.chain(news).map(|line| format!("{line}\n")).collect();
                (*said, *notes) = (story.news.len(), story.notes.len());
                picture::print(&text);
            }
            Form::Picture(picture) => picture.draw(compose(story, picture::size())),
        }
    }
}

/// The picture for a window: notes, the tree, and as much of the news as there is room for.
fn compose(story: &Story, size: Size) -> Vec<Painted> {
    // One row stays free for the cursor.
    let rows = size.rows.saturating_sub(1);
    let plain = |text: &str| Painted::new(Colour::Plain, text);
    let mut lines: Vec<Painted> = story.notes.iter().map(|note| plain(note)).collect();
    let tree: Vec<Painted> = story.lines.iter().map(object).collect();
    // Two headings and the least news below the notes; the tree has the rest, and all of a very small window.
    let news = if rows < SMALL { 0 } else { 2 * (LEAST + 1) };
    // Advice that would push the objects out of a small window is left out first.
    if rows.saturating_sub(lines.len() + news) < tree.len().min(rows / 2) {
        lines.truncate(1);
    }
    let room = rows.saturating_sub(lines.len() + news);
    lines.extend(picture::first(tree, room));
    if news == 0 {
        return lines;
    }
    let left = rows.saturating_sub(lines.len() + 2);
    let events = story.last(|news| matches!(news, News::Event(_)), (left / 2).min(NEWS));
    let reconciles = left.saturating_sub(events.len()).min(NEWS);
    let reconciles = story.last(|news| matches!(news, News::Reconcile(_)), reconciles);
    for (title, news) in [("Events", events), ("Reconciles", reconciles)] {
        lines.push(Painted::new(Colour::Dim, title));
        lines.extend(news.into_iter().map(plain));
    }
    lines.truncate(rows);
    lines
}

fn object(line: &Line) -> Painted {
    let indent = "  ".repeat(line.depth);
    let width = 46usize.saturating_sub(indent.len());
    let name = format!("{indent}{:<width$} ", line.name);
    let colour = match line.mood {
        Mood::Good => Colour::Good,
        Mood::Waiting => Colour::Waiting,
        Mood::Plain => Colour::Plain,
    };
    Painted::new(Colour::Plain, name).and(colour, line.state.as_str())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn picture_fits_every_window_and_has_all_objects_of_the_demo_in_a_small_one() {
        let mut story = Story::new(Instant::now());
        for note in 0..7 {
            story.note(&format!("note {note}"));
        }
        story.lines = (0..14)
            .map(|n| Line {
                depth: n % 4,
                name: format!("Pod/number-{n}"),
                state: "Running".to_owned(),
                mood: Mood::Good,
                revision: 0,
            })
            .collect();
        story.news = (0..40)
            .flat_map(|n| {
                [
                    News::Event(format!("event {n}")),
                    News::Reconcile(format!("reconcile {n}")),
                ]
            })
            .collect();
        for (columns, rows) in [(80, 24), (200, 60), (40, 10), (20, 6)] {
            let lines = compose(&story, Size { columns, rows });
            assert!(lines.len() < rows, "{} lines in {rows} rows", lines.len());
            let text: Vec<String> = lines.iter().map(Painted::text).collect();
            assert!(
                text.iter().any(|line| line.contains("number-0")),
                "{text:?}"
            );
            if rows >= 24 {
                assert!(
                    text.iter().any(|line| line.contains("number-13")),
                    "{text:?}"
                );
                assert!(
                    text.iter().any(|line| line.contains("reconcile 39")),
                    "{text:?}"
                );
            }
        }
    }
}
