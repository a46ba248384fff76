//! Content negotiation: which representation of an object the client wants, and in which format.

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use super::query::Query;
use crate::printers::MetaVersion;
use crate::status::ApiError;

/// Media type of protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Most alternatives of an `Accept` header that are looked at.
const MAX_ALTERNATIVES: usize = 32;

/// How an answer is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    /// What of the object.
    pub(crate) representation: Representation,
    /// In which format.
    pub(crate) format: Format,
}

/// What of an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The object itself, with all of its fields.
    Object,
    /// Rows and columns, as `kubectl get` shows them.
    Table(MetaVersion),
    /// Type and metadata only.
    PartialMetadata(MetaVersion),
    /// Aggregated discovery, on `/api` and `/apis` only.
    Discovery(DiscoveryVersion),
}

/// Version of `apidiscovery.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryVersion {
    V2,
    V2Beta1,
}

/// What can be read and written as protobuf, besides JSON and YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protobuf {
    /// Objects of built-in kinds.
    Objects,
    /// Custom resources have no messages; their metadata has.
    Metadata,
}

impl Protobuf {
    /// Formats in which objects can be read and written, as refusals list them.
    pub(crate) fn available(self) -> &'static str {
        match self {
            Protobuf::Objects => {
                "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            }
            Protobuf::Metadata => "application/json, application/yaml",
        }
    }

    fn serves(self, representation: Representation) -> bool {
        match representation {
            Representation::Object => self == Protobuf::Objects,
            Representation::PartialMetadata(_) => true,
            Representation::Table(_) | Representation::Discovery(_) => false,
        }
    }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON on one line.
    Json,
    /// JSON with indentation, for people.
    PrettyJson,
    /// YAML, with the same content as JSON.
    Yaml,
    /// Protobuf, where the answer is a built-in kind.
    Protobuf,
}

impl Accept {
    /// Reads the request's wishes, in the client's order of preference.
    pub(crate) fn read(
        headers: &HeaderMap,
        query: &Query,
        protobuf: Protobuf,
    ) -> Result<Self, ApiError> {
        let header = headers
            .get(ACCEPT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("*/*");
        let mut alternatives: Vec<Alternative<'_>> = header
            .split(',')
            .take(MAX_ALTERNATIVES)
            .map(Alternative::parse)
            .collect();
        // Stable, so that alternatives of equal quality keep the client's order.
        alternatives.sort_by(|a, b| b.quality.total_cmp(&a.quality));
        let json = if wants_pretty(headers, query) {
            Format::PrettyJson
        } else {
            Format::Json
        };
        let mut known_type = false;
        for alternative in &alternatives {
            let format = match alternative.media_type {
                "application/json" | "*/*" | "application/*" | "" => json,
                "application/yaml" => Format::Yaml,
                PROTOBUF => Format::Protobuf,
                _ => continue,
            };
            known_type |= format != Format::Protobuf || protobuf == Protobuf::Objects;
            if let Some(representation) = alternative.representation()
                && (format != Format::Protobuf || protobuf.serves(representation))
            {
                return Ok(Self {
                    representation,
                    format,
                });
            }
        }
        Err(refusal(known_type, protobuf.available()))
    }
}

fn refusal(known_type: bool, available: &str) -> ApiError {
    if known_type {
        ApiError::not_acceptable(format!(
            "only the following media types are accepted: {available}"
        ))
    } else {
        ApiError::not_acceptable(format!(
            "406: Not Acceptable\n\nAvailable representations: {available}"
        ))
        .with_empty_details()
    }
}

/// People see indented JSON, programs do not.
fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    query.tristate("pretty").unwrap_or_else(|| {
        let agent = headers
            .get(USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("");
        ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|human| agent.starts_with(human))
    })
}

/// One alternative of an `Accept` header.
struct Alternative<'a> {
    media_type: &'a str,
    quality: f32,
    group: &'a str,
    version: &'a str,
    shown_as: &'a str,
}

impl<'a> Alternative<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        let mut alternative = Self {
            media_type,
            quality: 1.0,
            group: "",
            version: "",
            shown_as: "",
        };
        for (name, value) in parts.filter_map(|p| p.split_once('=')) {
            match name {
                "q" => alternative.quality = value.parse().unwrap_or(0.0),
                "g" => alternative.group = value,
                "v" => alternative.version = value,
                "as" => alternative.shown_as = value,
                _ => {}
            }
        }
        alternative
    }

    fn representation(&self) -> Option<Representation> {
        let meta = match (self.group, self.version) {
            ("meta.k8s.io", "v1") => Some(MetaVersion::V1),
            ("meta.k8s.io", "v1beta1") => Some(MetaVersion::V1Beta1),
            _ => None,
        };
        match self.shown_as {
            "" => Some(Representation::Object),
            "Table" => meta.map(Representation::Table),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => {
                meta.map(Representation::PartialMetadata)
            }
            "APIGroupDiscoveryList" if self.group == "apidiscovery.k8s.io" => match self.version {
                "v2" => Some(Representation::Discovery(DiscoveryVersion::V2)),
                "v2beta1" => Some(Representation::Discovery(DiscoveryVersion::V2Beta1)),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const JSON: Accept = Accept {
        representation: Representation::Object,
        format: Format::Json,
    };

    fn accept(header: &'static str) -> Result<Accept, String> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(header));
        Accept::read(&headers, &Query::default(), Protobuf::Objects)
            .map_err(|e| e.message().to_owned())
    }

    fn custom(header: &'static str) -> Result<Accept, String> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(header))]);
        Accept::read(&headers, &Query::default(), Protobuf::Metadata)
            .map_err(|e| e.message().to_owned())
    }

    #[test]
    fn the_first_servable_alternative_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(
            accept(table),
            Ok(Accept {
                representation: Representation::Table(MetaVersion::V1),
                format: Format::Json
            })
        );
        assert_eq!(
            accept("application/json;q=0.1,application/yaml"),
            Ok(Accept {
                representation: Representation::Object,
                format: Format::Yaml
            })
        );
        assert_eq!(accept("*/*"), Ok(JSON));
    }

    #[test]
    fn protobuf_is_for_built_in_kinds_and_metadata() {
        let protobuf = |representation| {
            Ok(Accept {
                representation,
                format: Format::Protobuf,
            })
        };
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(both), protobuf(Representation::Object));
        assert_eq!(custom(both), Ok(JSON));
        let stream = "application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(accept(stream), protobuf(Representation::Object));
        assert!(custom(stream).is_err_and(|m| m.starts_with("406: Not Acceptable")));
        let metadata =
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let representation = Representation::PartialMetadata(MetaVersion::V1);
        assert_eq!(accept(metadata), protobuf(representation));
        assert_eq!(custom(metadata), protobuf(representation));
        let table =
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(accept(table), Ok(JSON));
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_what_can() {
        assert!(accept("application/xml").is_err_and(|m| m.starts_with("406: Not Acceptable")));
        assert!(
            accept("application/json;as=Foo;g=meta.k8s.io;v=v1")
                .is_err_and(|m| m.starts_with("only the following"))
        );
    }
}
