//! What `go test -json` tells, with the specs of Ginkgo counted one by one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Colours of terminals.
static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern("\u{1b}\\[[0-9;]*m"));
/// The last line of a suite.
static SUMMARY: LazyLock<Regex> = LazyLock::new(|| pattern(r"-- (\d+) Passed \| (\d+) Failed"));
/// One failure in the list that a suite ends with.
static FAILURE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*\[(?:FAIL|PANICKED!|TIMEDOUT|INTERRUPTED)\] (.+)$"));

/// One package and what became of its tests.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) passed: usize,
    /// Names of tests and specs.
    pub(crate) failed: Vec<String>,
    pub(crate) seconds: f64,
    pub(crate) output: String,
    tests: BTreeMap<String, Test>,
}

/// One Go test.
#[derive(Debug, Default)]
struct Test {
    output: String,
    passed: Option<bool>,
}

impl Package {
    /// Whether it has any tests.
    pub(crate) fn is_tested(&self) -> bool {
        self.passed > 0 || !self.failed.is_empty()
    }

    /// The name without that of its module.
    pub(crate) fn short_name(&self) -> &str {
        let found = ["sigs.k8s.io/controller-runtime/", "kubewright.dev/"]
            .iter()
            .find_map(|module| self.name.strip_prefix(module));
        found.unwrap_or(&self.name)
    }

    fn hear(&mut self, event: &Value) {
        let test = event["Test"].as_str().map(str::to_owned);
        match (event["Action"].as_str().unwrap_or(""), test) {
            ("output", test) => {
                let text = event["Output"].as_str().unwrap_or("");
                let text = COLOUR.replace_all(text, "");
                self.output.push_str(&text);
                let test = self.tests.entry(test.unwrap_or_default()).or_default();
                test.output.push_str(&text);
            }
            (action @ ("pass" | "fail"), Some(test)) => {
                self.tests.entry(test).or_default().passed = Some(action == "pass");
            }
            (action @ ("pass" | "fail"), None) => {
                self.seconds = event["Elapsed"].as_f64().unwrap_or(0.0);
                self.count(action == "pass");
            }
            _ => {}
        }
    }

    /// Counts specs where a test is a suite of them, and tests where it is not.
    fn count(&mut self, passed: bool) {
        let tests = std::mem::take(&mut self.tests);
        let has_children = |name: &str| {
            tests
                .keys()
                .any(|other| other.starts_with(&format!("{name}/")))
        };
        for (name, test) in &tests {
            match SUMMARY.captures(&test.output) {
                Some(summary) => {
                    self.passed += summary[1].parse::<usize>().unwrap_or(0);
                    self.failed.extend(failures(&test.output));
                }
                None if name.is_empty() || has_children(name) => {}
                None if test.passed == Some(true) => self.passed += 1,
                // A test without an end was running when its package died.
                None => self.failed.push(name.clone()),
            }
        }
        if !passed && self.failed.is_empty() {
            self.failed.push("the package as a whole".to_owned());
        }
    }
}

fn failures(output: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| FAILURE.captures(line));
    lines.map(|found| found[1].trim().to_owned()).collect()
}

/// The packages of an output, in the order of their names.
pub(crate) fn packages(output: &str) -> Vec<Package> {
    let mut packages = BTreeMap::<String, Package>::new();
    for line in output.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        // A package that does not compile is reported as an import path with the compiler's output.
        let name = event["Package"].as_str().or(event["ImportPath"].as_str());
        let Some(name) = name else { continue };
        let package = packages.entry(name.to_owned()).or_default();
        name.clone_into(&mut package.name);
        package.hear(&event);
    }
    packages.into_values().collect()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("our own patterns are well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"
{"Action":"output","Package":"m/a","Test":"TestSuite","Output":"Summarizing 1 Failure:\n"}
{"Action":"output","Package":"m/a","Test":"TestSuite","Output":"  \u001b[38;5;9m[FAIL]\u001b[0m Client [It] fails\n"}
{"Action":"output","Package":"m/a","Test":"TestSuite","Output":"FAIL! -- 7 Passed | 1 Failed | 0 Pending | 0 Skipped\n"}
{"Action":"fail","Package":"m/a","Test":"TestSuite","Elapsed":1}
{"Action":"pass","Package":"m/a","Test":"TestPlain","Elapsed":0}
{"Action":"pass","Package":"m/a","Test":"TestTable/one","Elapsed":0}
{"Action":"fail","Package":"m/a","Test":"TestTable/two","Elapsed":0}
{"Action":"fail","Package":"m/a","Test":"TestTable","Elapsed":0}
{"Action":"fail","Package":"m/a","Elapsed":1.5}
not json
{"Action":"fail","Package":"m/b","Elapsed":0}
{"Action":"pass","Package":"m/c","Elapsed":0}
"#;

    #[test]
    fn specs_are_counted_and_suites_are_not() {
        let packages = packages(OUTPUT);
        let [a, b, c] = packages.as_slice() else {
            panic!("three packages, not {}", packages.len());
        };
        assert_eq!(a.passed, 9);
        assert_eq!(a.failed, ["Client [It] fails", "TestTable/two"]);
        assert_eq!(b.failed, ["the package as a whole"]);
        assert!(!c.is_tested());
    }
}
