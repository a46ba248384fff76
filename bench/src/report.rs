//! The figures as a table: on the terminal, and as the page docs/benchmarks.md.

use std::fmt::Write as _;

use crate::figure::{Figure, Value};

/// What one server measured, with its name.
pub(crate) type Column = (String, Vec<Figure>);

/// A row of texts.
type Row = Vec<String>;

/// Prints the table.
pub(crate) fn print(columns: &[Column], machine: &str) {
    let rows = table(columns);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|at| {
            rows.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    println!("{machine}\n");
    for row in rows {
        let mut line = String::new();
        for (text, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{text:<width$}  ");
        }
        println!("{}", line.trim_end());
    }
}

/// The page.
pub(crate) fn markdown(columns: &[Column], machine: &str) -> String {
    let mut page = format!(
        "{}\n\nMachine: {machine}.\n\n",
        include_str!("introduction.md").trim_end()
    );
    for (at, row) in table(columns).iter().enumerate() {
        let _ = writeln!(page, "| {} |", row.join(" | "));
        if at == 0 {
            let _ = writeln!(page, "|---|{}", "---:|".repeat(row.len() - 1));
        }
    }
    if columns.len() == 1 {
        let _ = write!(page, "\n{}", include_str!("comparison.md"));
    }
    page
}

fn table(columns: &[Column]) -> Vec<Row> {
    let mut rows = vec![heading(columns)];
    let (_, ours) = &columns[0];
    for (at, figure) in ours.iter().enumerate() {
        let mut row = vec![
            figure.what.clone(),
            figure.value.to_string(),
            figure.aim.map_or(String::new(), aim),
        ];
        for (_, others) in &columns[1..] {
            let other = &others[at];
            row.push(other.value.to_string());
            let ratio = figure.value.better_than(other.value);
            row.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.1} x")));
        }
        rows.push(row);
    }
    rows
}

fn heading(columns: &[Column]) -> Row {
    let mut row = vec!["what".to_owned(), columns[0].0.clone(), "aim".to_owned()];
    for (name, _) in &columns[1..] {
        row.extend([name.clone(), "we are better by".to_owned()]);
    }
    row
}

fn aim(aim: Value) -> String {
    match aim {
        Value::Time(_) | Value::Bytes(_) => format!("≤ {aim}"),
        Value::PerSecond(_) => format!("≥ {aim}"),
    }
}
