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
    if !columns.iter().any(|(name, _)| name.contains("apiserver")) {
        let _ = write!(page, "\n{}", include_str!("comparison.md"));
    }
    page
}

fn table(columns: &[Column]) -> Vec<Row> {
    let mut rows = vec![heading(columns)];
    let (_, ours) = &columns[0];
    for figure in ours {
        let mut row = vec![
            figure.what.clone(),
            figure.value.to_string(),
            figure.aim.map_or(String::new(), aim),
        ];
        for (_, others) in &columns[1..] {
            // What a server does not have was not measured with it.
            let other = others.iter().find(|other| other.what == figure.what);
            let ratio = other.and_then(|other| figure.value.better_than(other.value));
            row.push(other.map_or(String::new(), |other| other.value.to_string()));
            row.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x")));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn column(name: &str, figures: &[(&str, u64)]) -> Column {
        let figures = figures
            .iter()
            .map(|(what, time)| Figure::time(*what, Duration::from_micros(*time)))
            .collect();
        (name.to_owned(), figures)
    }

    #[test]
    fn figures_are_compared_by_name_and_what_a_peer_lacks_is_blank() {
        let columns = [
            column("ours", &[("start", 10), ("cluster", 5), ("get", 80)]),
            column("theirs", &[("start", 30), ("get", 160)]),
        ];
        let rows: Vec<String> = table(&columns).iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows[1..],
            [
                "start|10 µs||30 µs|3.00 x",
                "cluster|5 µs|||",
                "get|80 µs||160 µs|2.00 x",
            ]
        );
    }
}
