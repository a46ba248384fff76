//! Texts of a length, a format and a pattern.

use kubewright_schema::crd::Pattern;
use serde_json::Value;

use super::pattern;

/// The longest text that is made to satisfy a least length.
const MAX_LENGTH: usize = 10_000;

/// Texts that satisfy patterns which people write often.
const FAMILIAR: &[&str] = &[
    "example",
    "example.com",
    "a",
    "1",
    "10",
    "100m",
    "1Gi",
    "1h",
    "30s",
    "v1",
    "1.0.0",
    "v1.0.0",
    "example.com/name",
    "10.0.0.0/24",
    "10.0.0.1",
    "https://example.com",
    "0 * * * *",
    "Example",
    "/example",
    "example.com/image:v1",
    "50%",
    "EXAMPLE",
];

/// A valid text of each format that servers know, without the dashes that they ignore.
const FORMATS: &[(&str, &str)] = &[
    ("bsonobjectid", "507f1f77bcf86cd799439011"),
    ("uri", "https://example.com"),
    ("email", "user@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "10.0.0.1"),
    ("ipv6", "2001:db8::1"),
    ("cidr", "10.0.0.0/24"),
    ("mac", "02:00:00:00:00:01"),
    ("uuid", "3d813cbb-47fb-4ba9-91df-831e1593ac29"),
    ("uuid3", "3d813cbb-47fb-3ba9-91df-831e1593ac29"),
    ("uuid4", "3d813cbb-47fb-4ba9-91df-831e1593ac29"),
    ("uuid5", "3d813cbb-47fb-5ba9-91df-831e1593ac29"),
    ("isbn", "0306406152"),
    ("isbn10", "0306406152"),
    ("isbn13", "9780306406157"),
    ("creditcard", "4111111111111111"),
    ("ssn", "123-45-6789"),
    ("hexcolor", "#336699"),
    ("rgbcolor", "rgb(1,2,3)"),
    ("byte", "ZXhhbXBsZQ=="),
    ("date", "2030-01-01"),
    ("duration", "1h"),
    ("datetime", "2030-01-01T00:00:00Z"),
    ("k8sshortname", "example"),
    ("k8slongname", "example.com"),
];

/// A text for a field of this name. The best attempt, if nothing fits.
pub(super) fn make(schema: &Value, name: &str, variant: usize) -> String {
    let limits = Limits::of(schema);
    let named = numbered(&kebab(name), variant);
    if let Some(text) = schema["format"].as_str().and_then(of_format) {
        return text.to_owned();
    }
    let familiar = FAMILIAR.iter().map(|text| numbered(text, variant));
    let candidates = std::iter::once(named.clone()).chain(familiar);
    for candidate in candidates {
        if let Some(text) = limits.fit(&candidate) {
            return text;
        }
    }
    let source = limits.pattern.as_ref().map_or("", Pattern::as_str);
    let made = pattern::texts(source, limits.least + variant, limits.most);
    let mut fitting = made.into_iter().filter(|text| limits.accept(text));
    fitting.nth(variant).unwrap_or(named)
}

fn of_format(format: &str) -> Option<&'static str> {
    let plain = format.replace('-', "");
    FORMATS
        .iter()
        .find(|(name, _)| *name == plain)
        .map(|(_, text)| *text)
}

/// What a schema demands of a text.
struct Limits {
    least: usize,
    most: usize,
    pattern: Option<Pattern>,
}

impl Limits {
    fn of(schema: &Value) -> Self {
        let size = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        Self {
            least: size("minLength").unwrap_or(0).min(MAX_LENGTH),
            most: size("maxLength").unwrap_or(usize::MAX),
            pattern: schema["pattern"]
                .as_str()
                .and_then(|source| Pattern::new(source).ok()),
        }
    }

    fn accept(&self, text: &str) -> bool {
        let length = text.chars().count();
        (self.least..=self.most).contains(&length)
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(text))
    }

    /// The text, made longer or shorter if need be.
    fn fit(&self, text: &str) -> Option<String> {
        let mut fitted: String = text.chars().take(self.most).collect();
        let length = fitted.chars().count();
        if length < self.least {
            let more = text.chars().filter(|c| c.is_alphanumeric()).cycle();
            fitted.extend(more.take(self.least - length));
        }
        self.accept(&fitted).then_some(fitted)
    }
}

/// `deploymentName` as `deployment-name`, which names, labels and most patterns allow.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_lower {
            out.push('-');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        }
    }
    if out.is_empty() {
        "example".to_owned()
    } else {
        out
    }
}

fn numbered(text: &str, variant: usize) -> String {
    match variant {
        0 => text.to_owned(),
        _ => format!("{text}-{}", variant + 1),
    }
}
