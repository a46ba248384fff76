//! A line of a table that has a column for kubewright, one for kube-rs and one for the peer in Go.

use std::time::Duration;

use crate::figure::Value;
use crate::verdict::{Aim, Verdict};

const KUBE_RS: &str = "kube-rs'";

/// A line of the table.
pub(crate) struct Row {
    what: String,
    ours: f64,
    kube_rs: f64,
    go: f64,
    unit: Unit,
    aims: Vec<Option<Verdict>>,
}

/// How a figure is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    /// Bytes, few of them.
    Kilobytes,
    /// Bytes, many of them.
    Megabytes,
    Ratio,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: Unit) -> Self {
        Self {
            what: what.into(),
            ours: 0.0,
            kube_rs: 0.0,
            go: 0.0,
            unit,
            aims: Vec::new(),
        }
    }

    pub(crate) fn figures(mut self, ours: f64, kube_rs: f64, go: f64) -> Self {
        (self.ours, self.kube_rs, self.go) = (ours, kube_rs, go);
        self
    }

    pub(crate) fn than_kube_rs(self, aim: Aim) -> Self {
        let other = self.kube_rs;
        self.than(other, KUBE_RS, aim)
    }

    /// The aim is about this peer in Go.
    pub(crate) fn than_go(self, of: &'static str, aim: Aim) -> Self {
        let other = self.go;
        self.than(other, of, aim)
    }

    pub(crate) fn than(mut self, other: f64, of: &'static str, aim: Aim) -> Self {
        self.aims.push(Verdict::new(self.ours, other, of, aim));
        self
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |figure| self.unit.show(figure);
        let aims: Vec<String> = self.aims.iter().flatten().map(Verdict::to_string).collect();
        write!(
            f,
            "| {} | {} | {} | {} | {} |",
            self.what,
            show(self.ours),
            show(self.kube_rs),
            show(self.go),
            aims.join(", ")
        )
    }
}

impl Unit {
    /// The figure; nothing when it was not measured.
    pub(crate) fn show(self, figure: f64) -> String {
        if figure <= 0.0 {
            return String::new();
        }
        match self {
            Self::Seconds => Value::Time(Duration::from_secs_f64(figure)).to_string(),
            Self::PerSecond => Value::PerSecond(figure).to_string(),
            Self::Kilobytes => format!("{:.2} KB", figure / 1e3),
            Self::Megabytes => format!("{:.1} MB", figure / 1e6),
            Self::Ratio => format!("{figure:.2}"),
        }
    }
}
