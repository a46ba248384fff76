//! A picture in the terminal that is drawn over itself: it fits the window, keeps its place, and stays when it ends.

use std::io::{IsTerminal as _, Write as _};

/// The size of a window where none is known.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};
/// Lines of the smallest window that is drawn for.
const FEWEST: usize = 6;

/// How large the window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// A line and the colour of its parts. Widths are counted without the colours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Painted(Vec<(Colour, String)>);

/// What a part of a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Dim,
    Good,
    Waiting,
    Bad,
}

impl Painted {
    /// A line in one colour.
    pub(crate) fn new(colour: Colour, text: impl Into<String>) -> Self {
        Self(vec![(colour, text.into())])
    }

    /// The same line with another part behind it.
    pub(crate) fn and(mut self, colour: Colour, text: impl Into<String>) -> Self {
        self.0.push((colour, text.into()));
        self
    }

    /// The line without colours.
    pub(crate) fn text(&self) -> String {
        self.fit(usize::MAX, Colours::Off).trim_end().to_owned()
    }

    /// The line as it fits a width: what is too long ends in an ellipsis. Control characters are not written out.
    fn fit(&self, columns: usize, colours: Colours) -> String {
        let mut left = columns;
        let mut out = String::new();
        let all: usize = self.0.iter().map(|(_, text)| text.chars().count()).sum();
        let is_cut = all > columns;
        for (colour, text) in &self.0 {
            let room = if is_cut { left.saturating_sub(1) } else { left };
            let shown: String = text
                .chars()
                .take(room)
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect();
            left -= shown.chars().count();
            out.push_str(&colours.paint(*colour, &shown));
        }
        if is_cut {
            out.push('…');
        }
        out
    }
}

/// Whether colours are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    On,
    Off,
}

impl Colours {
    fn wanted() -> Self {
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Self::Off
        } else {
            Self::On
        }
    }

    fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Plain => return text.to_owned(),
            Colour::Dim => "2",
            Colour::Good => "32",
            Colour::Waiting => "33",
            Colour::Bad => "31",
        };
        if self == Self::Off || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// The place in the terminal where pictures are drawn.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    drawn: usize,
    last: Option<(Size, Vec<Painted>)>,
}

impl Picture {
    /// Draws over the last picture. Lines beyond the height of the window are left out by whoever makes them.
    pub(crate) fn draw(&mut self, lines: Vec<Painted>) {
        let size = size();
        let next = Some((size, lines));
        if next == self.last {
            return;
        }
        self.last = next;
        let Some((_, lines)) = &self.last else { return };
        print(&frame(lines, self.drawn, size, Colours::wanted()));
        self.drawn = lines.len().min(size.rows.saturating_sub(1));
    }

    /// Leaves what was drawn where it is: the next picture begins below.
    pub(crate) fn leave(&mut self) {
        *self = Self::default();
    }
}

/// The bytes that draw lines over a picture of so many lines. Each line is cleared behind its text, so nothing flickers.
fn frame(lines: &[Painted], drawn: usize, size: Size, colours: Colours) -> String {
    let mut text = if drawn > 0 {
        format!("\x1b[{}A\r", drawn.min(size.rows.saturating_sub(1)))
    } else {
        String::new()
    };
    // The last row stays free for the cursor: a picture that fills the window would scroll with every frame.
    for line in lines.iter().take(size.rows.saturating_sub(1)) {
        text.push_str(&line.fit(size.columns.saturating_sub(1), colours));
        text.push_str("\x1b[K\n");
    }
    text.push_str("\x1b[J");
    text
}

/// The size of the window, as it is now.
pub(crate) fn size() -> Size {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return USUAL;
    }
    match rustix::termios::tcgetwinsize(&out) {
        Ok(found) if found.ws_col > 0 && found.ws_row > 0 => Size {
            columns: usize::from(found.ws_col),
            rows: usize::from(found.ws_row).max(FEWEST),
        },
        _ => USUAL,
    }
}

/// Writes to the standard output. A reader that has gone away stops nothing.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A tree that fits: the first lines, and how many more there are.
pub(crate) fn first(lines: Vec<Painted>, rows: usize) -> Vec<Painted> {
    if lines.len() <= rows {
        return lines;
    }
    let kept = rows.saturating_sub(1);
    let more = lines.len() - kept;
    let mut shown: Vec<Painted> = lines.into_iter().take(kept).collect();
    shown.push(Painted::new(Colour::Dim, format!("… {more} more")));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size {
        columns: 80,
        rows: 24,
    };

    #[test]
    fn lines_are_cut_to_the_window_and_colours_do_not_count() {
        let line = Painted::new(Colour::Good, "x".repeat(60)).and(Colour::Bad, "y".repeat(60));
        let plain = line.fit(80, Colours::Off);
        assert_eq!(plain.chars().count(), 80);
        assert!(plain.ends_with("y…"), "{plain}");
        let coloured = line.fit(80, Colours::On);
        let bare = coloured
            .replace("\x1b[32m", "")
            .replace("\x1b[31m", "")
            .replace("\x1b[0m", "");
        assert_eq!(bare, plain);
        let short = Painted::new(Colour::Plain, "a\u{1b}[2Jb");
        assert_eq!(short.fit(80, Colours::Off), "a\u{fffd}[2Jb");
    }

    #[test]
    fn picture_never_reaches_the_last_row_and_is_drawn_over_itself() {
        let lines = vec![Painted::new(Colour::Plain, "line"); 100];
        let drawn = frame(&lines, 0, SMALL, Colours::Off);
        assert_eq!(drawn.matches('\n').count(), 23);
        let again = frame(&lines, 23, SMALL, Colours::Off);
        assert!(again.starts_with("\x1b[23A\r"), "{again:?}");
        // A window that became smaller has no rows above its first one.
        let smaller = Size {
            columns: 40,
            rows: 10,
        };
        assert!(frame(&lines, 23, smaller, Colours::Off).starts_with("\x1b[9A\r"));
    }

    #[test]
    fn tree_that_is_too_long_says_how_much_is_missing() {
        let lines = vec![Painted::new(Colour::Plain, "line"); 10];
        let shown = first(lines.clone(), 4);
        assert_eq!(shown.len(), 4);
        assert_eq!(shown[3], Painted::new(Colour::Dim, "… 7 more"));
        assert_eq!(first(lines.clone(), 10), lines);
    }
}
