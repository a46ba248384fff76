//! Exports spans to an OpenTelemetry collector, by OTLP over HTTP: one for each reconcile, with its controller, key, number
//! and outcome, and whatever the reconcile does within it.
//!
//! The standard variables configure it: `OTEL_EXPORTER_OTLP_ENDPOINT` and its like say where to, `OTEL_SERVICE_NAME` and
//! `OTEL_RESOURCE_ATTRIBUTES` who this is, `OTEL_TRACES_SAMPLER` how many, `OTEL_BSP_*` how often; `OTEL_SDK_DISABLED` and
//! `OTEL_TRACES_EXPORTER=none` switch it off. The protocol is `http/protobuf`.

mod transport;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use transport::Transport;

/// The scope that spans are exported under.
const SCOPE: &str = "kubewright";

/// Why spans are not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// Nothing can be sent: no roots of trust, say.
    #[error("no connection to a collector can be made")]
    Transport(#[source] std::io::Error),
    /// What was configured cannot be used.
    #[error("the export of spans cannot be configured")]
    Configure(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was left could not be sent.
    #[error("the last spans could not be exported")]
    Finish(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The export of spans. It ends when this is [shut down](Telemetry::shut_down) or dropped.
///
/// ```no_run
/// use kubewright_runtime::telemetry::Telemetry;
/// use tracing_subscriber::layer::SubscriberExt;
/// use tracing_subscriber::util::SubscriberInitExt;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let telemetry = Telemetry::from_env("foo-operator")?;
/// tracing_subscriber::registry().with(telemetry.layer()).init();
/// // … the manager runs …
/// telemetry.shut_down().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// As the variables say; this is the name of the service where they have none. Call it within the runtime that is to
    /// send.
    ///
    /// # Errors
    /// When what they say cannot be used.
    pub fn from_env(service: &str) -> Result<Self, TelemetryError> {
        let is = |name: &str, value: &str| {
            std::env::var(name).is_ok_and(|found| found.eq_ignore_ascii_case(value))
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            let provider = SdkTracerProvider::builder().build();
            return Ok(Self { provider });
        }
        Self::start(service, None)
    }

    /// To the collector at this address, as `http://localhost:4318/v1/traces`; the variables say the rest.
    ///
    /// # Errors
    /// When what they say cannot be used.
    pub fn to(endpoint: &str, service: &str) -> Result<Self, TelemetryError> {
        Self::start(service, Some(endpoint))
    }

    fn start(service: &str, endpoint: Option<&str>) -> Result<Self, TelemetryError> {
        let transport = Transport::new().map_err(TelemetryError::Transport)?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(transport);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(endpoint);
        }
        let exporter = exporter.build();
        let exporter = exporter.map_err(|error| TelemetryError::Configure(Box::new(error)))?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource(service))
            .build();
        Ok(Self { provider })
    }

    /// The layer that a subscriber has to have for its spans to be exported.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer(SCOPE))
    }

    /// Sends what is left. Spans that end later are lost.
    ///
    /// # Errors
    /// When the collector does not take them.
    pub async fn shut_down(self) -> Result<(), TelemetryError> {
        // The exporter waits on a thread of its own for what the runtime sends.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown()).await;
        let ended = ended.unwrap_or_else(|error| {
            let what = error.to_string();
            Err(OTelSdkError::InternalFailure(what))
        });
        ended.map_err(|error| TelemetryError::Finish(Box::new(error)))
    }
}

/// Who this is: the variables first, then the name that the program gives.
fn resource(service: &str) -> Resource {
    let named = |name| std::env::var(name).is_ok_and(|found| !found.is_empty());
    let attributes = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let builder = Resource::builder();
    if named("OTEL_SERVICE_NAME") || attributes.contains("service.name=") {
        builder.build()
    } else {
        builder.with_service_name(service.to_owned()).build()
    }
}
