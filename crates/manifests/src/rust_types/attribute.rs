//! Attributes, laid out as rustfmt lays them out.

/// The widest list of arguments on one line.
const WIDTH: usize = 70;
/// The widest line.
pub(super) const LINE: usize = 100;

/// One argument of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// `namespaced`, or `group = "ex.io"`.
    Plain(String),
    /// `rule("..", message = "..")`.
    List(String, Vec<Item>),
}

impl Item {
    pub(super) fn word(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }

    pub(super) fn pair(name: &str, value: impl std::fmt::Display) -> Self {
        Self::Plain(format!("{name} = {value}"))
    }

    fn on_one_line(&self) -> String {
        match self {
            Item::Plain(text) => text.clone(),
            Item::List(name, items) => format!("{name}({})", joined(items)),
        }
    }

    /// As source; `before` is the width of what stands on the line already, `after` of what must follow.
    fn lay_out(&self, indent: usize, before: usize, after: usize) -> String {
        let Item::List(name, items) = self else {
            return self.on_one_line();
        };
        let arguments = joined(items);
        let width = before + name.len() + arguments.len() + 2 + after;
        if arguments.len() <= WIDTH && width <= LINE {
            return self.on_one_line();
        }
        if let [only @ Item::List(..)] = &items[..] {
            let inner = only.lay_out(indent, before + name.len() + 1, after + 1);
            return format!("{name}({inner})");
        }
        let margin = " ".repeat(indent + 4);
        let lines: Vec<String> = items
            .iter()
            .map(|item| format!("{margin}{}", item.lay_out(indent + 4, indent + 4, 1)))
            .collect();
        format!("{name}(\n{}\n{})", lines.join(",\n"), " ".repeat(indent))
    }
}

fn joined(items: &[Item]) -> String {
    items
        .iter()
        .map(Item::on_one_line)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Writes `#[name(items)]` with its indentation and the end of the line, or nothing if `items` is empty.
pub(super) fn line(name: &str, items: &[Item], indent: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let whole = Item::List(name.to_owned(), items.to_vec());
    let margin = " ".repeat(indent);
    format!("{margin}#[{}]\n", whole.lay_out(indent, indent + 2, 1))
}
