//! Label selectors in the notation of `kubectl -l`: `app=web,tier in (a,b),!legacy`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::Expression;

/// Longest selector that is read.
const LONGEST: usize = 64 * 1024;

/// Why a text or a `LabelSelector` is not one that selects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{:?} is not a label selector: {problem}", shown(.text))]
pub struct SelectorError {
    text: String,
    problem: &'static str,
}

/// As much of a text as an error shows.
fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// What converts without an error goes where an error may be.
impl From<Infallible> for SelectorError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// What labels have to be like. All requirements hold together; none means that all objects are selected.
///
/// It is read from the notation of `kubectl -l`, made of pairs, or converted from a `LabelSelector` of the API or a selector of
/// `kube`. Wherever labels select, this is the type: what takes a `TryInto<Selector>` takes all of these.
///
/// ```
/// use kubewright_cache::Selector;
///
/// let selector = Selector::parse("app=web,tier in (a,b),!legacy")?;
/// let labels = [("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "a".to_owned())].into();
/// assert!(selector.matches(&labels));
/// assert_eq!(Selector::from([("app", "web")]), Selector::parse("app=web")?);
/// # Ok::<(), kubewright_cache::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    label: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let problem = |problem| SelectorError {
            text: text.to_owned(),
            problem,
        };
        if text.len() > LONGEST {
            return Err(problem("it is too long"));
        }
        let mut rest = Rest(text.trim());
        let mut requirements = Vec::new();
        while !rest.0.is_empty() {
            requirements.push(rest.requirement().map_err(problem)?);
            if !rest.take(",") && !rest.0.is_empty() {
                return Err(problem("a comma is missing"));
            }
        }
        Ok(Self(requirements))
    }

    /// The selector as text. What cannot be read stays as it was given: whoever applies it, here or on the server, refuses it.
    pub(crate) fn text_of(selector: impl TryInto<Self, Error: Into<SelectorError>>) -> String {
        match selector.try_into() {
            Ok(selector) => selector.to_string(),
            Err(error) => error.into().text,
        }
    }

    /// Whether there is no requirement, so that everything is selected.
    pub fn selects_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|label| labels.get(label).map(String::as_str))
    }

    /// Whether an object is selected whose labels are looked up by this function.
    pub fn matches_by<T: AsRef<str>>(&self, look_up: impl Fn(&str) -> Option<T>) -> bool {
        self.0.iter().all(|requirement| {
            let value = look_up(&requirement.label);
            requirement.operator.admits(value.as_ref().map(T::as_ref))
        })
    }
}

impl Operator {
    fn admits(&self, value: Option<&str>) -> bool {
        let one_of =
            |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => one_of(values),
            Self::NotIn(values) => !one_of(values),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// What is left to read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn requirement(&mut self) -> Result<Requirement, &'static str> {
        let absent = self.take("!");
        let label = self.word();
        if label.is_empty() {
            return Err("a label is missing");
        }
        let operator = if absent {
            Operator::Absent
        } else {
            self.operator()?
        };
        let label = label.to_owned();
        Ok(Requirement { label, operator })
    }

    fn operator(&mut self) -> Result<Operator, &'static str> {
        if self.take("!=") {
            return Ok(Operator::NotIn(vec![self.word().to_owned()]));
        }
        if self.take("==") || self.take("=") {
            return Ok(Operator::In(vec![self.word().to_owned()]));
        }
        if self.take(">") {
            return self.number().map(Operator::Above);
        }
        if self.take("<") {
            return self.number().map(Operator::Below);
        }
        match self.word() {
            "" => Ok(Operator::Exists),
            "in" => self.values().map(Operator::In),
            "notin" => self.values().map(Operator::NotIn),
            _ => Err("an operator is not known"),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, &'static str> {
        if !self.take("(") {
            return Err("values stand in parentheses");
        }
        let mut values = vec![self.word().to_owned()];
        while self.take(",") {
            values.push(self.word().to_owned());
        }
        if self.take(")") {
            Ok(values)
        } else {
            Err("a parenthesis is not closed")
        }
    }

    fn number(&mut self) -> Result<i64, &'static str> {
        self.word().parse().map_err(|_| "a number is missing")
    }

    fn take(&mut self, mark: &str) -> bool {
        let Some(rest) = self.0.strip_prefix(mark) else {
            return false;
        };
        self.0 = rest.trim_start();
        true
    }

    /// Label names and values are of letters, digits and `-_./`.
    fn word(&mut self) -> &'a str {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let end = self.0.find(|c| !known(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { label, operator }) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match operator {
                Operator::Exists => write!(f, "{label}")?,
                Operator::Absent => write!(f, "!{label}")?,
                Operator::In(values) => match &values[..] {
                    [value] => write!(f, "{label}={value}")?,
                    values => write!(f, "{label} in ({})", values.join(","))?,
                },
                Operator::NotIn(values) => match &values[..] {
                    [value] => write!(f, "{label}!={value}")?,
                    values => write!(f, "{label} notin ({})", values.join(","))?,
                },
                Operator::Above(bound) => write!(f, "{label}>{bound}")?,
                Operator::Below(bound) => write!(f, "{label}<{bound}")?,
            }
        }
        Ok(())
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Selector {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(labels: T) -> Self {
        let equal = |(label, value): (K, V)| Requirement {
            label: label.into(),
            operator: Operator::In(vec![value.into()]),
        };
        Self(labels.into_iter().map(equal).collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Selector {
    fn from(labels: [(&str, &str); N]) -> Self {
        labels.into_iter().collect()
    }
}

impl From<BTreeMap<String, String>> for Selector {
    fn from(labels: BTreeMap<String, String>) -> Self {
        labels.into_iter().collect()
    }
}

impl From<Expression> for Selector {
    fn from(expression: Expression) -> Self {
        let (label, operator) = match expression {
            Expression::In(label, values) => (label, Operator::In(values.into_iter().collect())),
            Expression::NotIn(label, values) => {
                (label, Operator::NotIn(values.into_iter().collect()))
            }
            Expression::Equal(label, value) => (label, Operator::In(vec![value])),
            Expression::NotEqual(label, value) => (label, Operator::NotIn(vec![value])),
            Expression::Exists(label) => (label, Operator::Exists),
            Expression::DoesNotExist(label) => (label, Operator::Absent),
        };
        Self(vec![Requirement { label, operator }])
    }
}

impl From<kube::core::Selector> for Selector {
    fn from(selector: kube::core::Selector) -> Self {
        let each = selector.into_iter().map(Self::from);
        Self(each.flat_map(|selector| selector.0).collect())
    }
}

impl TryFrom<&str> for Selector {
    type Error = SelectorError;

    fn try_from(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<&String> for Selector {
    type Error = SelectorError;

    fn try_from(text: &String) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Selector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        Self::parse(&text)
    }
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = SelectorError;

    /// A `LabelSelector` of the API, such as a Deployment's. An empty one selects everything.
    fn try_from(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let labels = selector.match_labels.clone().unwrap_or_default();
        let mut all = Self::from(labels);
        for requirement in selector.match_expressions.iter().flatten() {
            all.0.push(required(requirement)?);
        }
        Ok(all)
    }
}

/// As `LabelSelectorAsSelector` of apimachinery reads it.
fn required(requirement: &LabelSelectorRequirement) -> Result<Requirement, SelectorError> {
    let LabelSelectorRequirement {
        key: label,
        operator,
        values,
    } = requirement;
    let values = values.clone().unwrap_or_default();
    let refused = |problem| SelectorError {
        text: format!("{label} {operator} {values:?}"),
        problem,
    };
    let operator = match (operator.as_str(), values.is_empty()) {
        ("In", false) => Operator::In(values),
        ("NotIn", false) => Operator::NotIn(values),
        ("In" | "NotIn", true) => return Err(refused("values are missing")),
        ("Exists", true) => Operator::Exists,
        ("DoesNotExist", true) => Operator::Absent,
        ("Exists" | "DoesNotExist", false) => return Err(refused("there are values")),
        _ => return Err(refused("an operator is not known")),
    };
    let label = label.clone();
    Ok(Requirement { label, operator })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let labels = labels
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let parsed = Selector::parse(selector).expect("it is a selector");
        assert_eq!(
            parsed.matches(&labels),
            expected,
            "{selector} on {labels:?}"
        );
        let again = Selector::parse(&parsed.to_string()).expect("it prints as it reads");
        assert_eq!(again, parsed);
    }

    #[test]
    fn selectors_choose_as_kubectl_does() {
        let web: &[_] = &[("app", "web"), ("tier", "a"), ("size", "5"), ("e", "")];
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = db", false),
            ("app!=db", true),
            ("none!=db", true),
            ("tier in (a, b),app", true),
            ("tier notin (a)", false),
            ("none notin (a)", true),
            ("!app", false),
            ("!none", true),
            ("! none , app", true),
            ("size>4,size<6", true),
            ("size>5", false),
            ("app>1", false),
            ("e=", true),
            ("app=", false),
            ("e in (,x)", true),
        ];
        for (selector, expected) in cases {
            check(selector, web, expected);
        }
    }

    #[test]
    fn selectors_of_the_api_and_of_kube_are_the_same_as_text() {
        let of_api = |value| serde_json::from_value::<LabelSelector>(value).expect("it is one");
        let cases = [
            (serde_json::json!({}), Some("")),
            (
                serde_json::json!({"matchLabels": {"a": "b"}, "matchExpressions": [
                    {"key": "c", "operator": "In", "values": ["d", "e"]}, {"key": "f", "operator": "Exists"},
                    {"key": "g", "operator": "DoesNotExist"}, {"key": "h", "operator": "NotIn", "values": ["i"]}]}),
                Some("a=b,c in (d,e),f,!g,h!=i"),
            ),
            (
                serde_json::json!({"matchExpressions": [{"key": "c", "operator": "In"}]}),
                None,
            ),
            (
                serde_json::json!({"matchExpressions": [{"key": "c", "operator": "Exists", "values": ["d"]}]}),
                None,
            ),
            (
                serde_json::json!({"matchExpressions": [{"key": "c", "operator": "Gt", "values": ["1"]}]}),
                None,
            ),
        ];
        for (selector, expected) in cases {
            let selector = of_api(selector);
            let found = Selector::try_from(&selector).map(|selector| selector.to_string());
            assert_eq!(found.ok().as_deref(), expected, "{selector:?}");
            if let (Some(text), Ok(of_kube)) = (expected, kube::core::Selector::try_from(selector))
            {
                assert_eq!(
                    Selector::from(of_kube),
                    Selector::parse(text).expect("a selector")
                );
            }
        }
    }

    #[test]
    fn everything_that_selects_labels_has_a_text() {
        assert_eq!(Selector::text_of("app = web, tier"), "app=web,tier");
        assert_eq!(Selector::text_of("app=web".to_owned()), "app=web");
        assert_eq!(Selector::text_of([("app", "web")]), "app=web");
        let of_kube = Expression::NotIn("a".into(), ["b".into(), "c".into()].into());
        assert_eq!(Selector::text_of(of_kube), "a notin (b,c)");
        let of_api = LabelSelector {
            match_labels: Some([("app".to_owned(), "web".to_owned())].into()),
            ..LabelSelector::default()
        };
        assert_eq!(Selector::text_of(&of_api), "app=web");
        assert_eq!(
            Selector::text_of("app in ("),
            "app in (",
            "for a server to refuse"
        );
    }

    #[test]
    fn text_that_is_no_selector_is_refused() {
        for text in [
            "=a", "a b", "a in x", "a in (x", "a,,b", "a>x", "!", "a=b c", "a;b", "a=b=c",
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
        assert!(Selector::parse(&"a,".repeat(40_000)).is_err());
    }
}
