//! Logs, traces and metrics of a process.
//!
//! Logs are human-readable on a terminal and JSON otherwise; traces are exported over OTLP when
//! `OTEL_EXPORTER_OTLP_ENDPOINT` is set, and propagated across every hop (W3C Trace Context); metrics are scraped from the
//! admin port. Tokens, cookies and bodies are never recorded.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use http::HeaderMap;
use metrics::Gauge;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// The variable with the endpoint of the trace exporter.
const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variable with the log filter, in the syntax of tracing's `EnvFilter`.
const LOG_FILTER: &str = "CAIRN_LOG";
/// Seconds; from a cached read to a call that reaches its deadline.
const DURATION_BUCKETS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];

/// At a thousand requests a second, the samples between two upkeeps take less than a megabyte.
const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Telemetry could not be initialized.
#[derive(Debug, Error)]
pub enum Error {
    /// The log filter cannot be read.
    #[error("CAIRN_LOG is not a log filter (try `info` or `cairn_content=debug,warn`): {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The trace exporter cannot be built.
    #[error("OTEL_EXPORTER_OTLP_ENDPOINT cannot be used: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The metrics recorder cannot be installed.
    #[error("metrics cannot be recorded: {0}")]
    Metrics(#[from] BuildError),
    /// Telemetry was initialized before.
    #[error("telemetry is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Telemetry of this process; flushed by [`Telemetry::shutdown`].
#[derive(Debug)]
pub struct Telemetry {
    metrics: PrometheusHandle,
    traces: Option<SdkTracerProvider>,
}

/// Initializes telemetry, once a process, inside the runtime. `default_filter` applies when `CAIRN_LOG` is not set.
///
/// # Errors
/// When the environment names a filter or an exporter that cannot be used.
pub fn install(service: &'static str, default_filter: &str) -> Result<Telemetry, Error> {
    let filter = log_filter(default_filter)?;
    let traces = trace_exporter(service)?;
    let trace_layer = traces.as_ref().map(|provider| {
        // Traces do not depend on the log filter.
        tracing_opentelemetry::layer().with_tracer(provider.tracer("cairn")).with_filter(LevelFilter::INFO)
    });
    tracing_subscriber::registry().with(log_layer().with_filter(filter)).with(trace_layer).try_init()?;
    let metrics = PrometheusBuilder::new().set_buckets(&DURATION_BUCKETS)?.install_recorder()?;
    tokio::spawn(run_upkeep(metrics.clone()));
    Ok(Telemetry { metrics, traces })
}

/// The log filter of `CAIRN_LOG`, or the default.
///
/// # Errors
/// When it is not a valid log filter.
pub fn log_filter(default: &str) -> Result<EnvFilter, Error> {
    let directives = variable(LOG_FILTER);
    Ok(EnvFilter::try_new(directives.as_deref().unwrap_or(default))?)
}

/// The value of an environment variable; an empty one counts as not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Aggregates samples into their buckets at intervals. Otherwise they accumulate until the metrics are scraped.
async fn run_upkeep(metrics: PrometheusHandle) {
    let mut upkeep = tokio::time::interval(METRICS_UPKEEP_INTERVAL);
    loop {
        upkeep.tick().await;
        metrics.run_upkeep();
    }
}

fn log_layer<S>() -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if io::stderr().is_terminal() {
        return fmt::layer().with_writer(io::stderr).compact().boxed();
    }
    fmt::layer().with_writer(io::stderr).json().flatten_event(true).with_ansi(false).boxed()
}

fn trace_exporter(service: &'static str) -> Result<Option<SdkTracerProvider>, ExporterBuildError> {
    if variable(OTLP_ENDPOINT).is_none() {
        return Ok(None);
    }
    global::set_text_map_propagator(TraceContextPropagator::new());
    let exporter = SpanExporter::builder().with_tonic().build()?;
    let resource =
        Resource::builder().with_attribute(KeyValue::new("service.name", format!("cairn-{service}"))).build();
    Ok(Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
}

impl Telemetry {
    /// The metrics in the Prometheus text format.
    pub fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Flushes the remaining traces.
    pub fn shutdown(self) {
        if let Some(traces) = self.traces
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Counts an operation in a gauge until it is dropped, which includes cancellation.
#[derive(Debug)]
pub struct InFlight(&'static Gauge);

impl InFlight {
    /// Increments the gauge.
    pub fn begin(gauge: &'static Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

struct HeaderWriter<'a>(&'a mut HeaderMap);

impl Injector for HeaderWriter<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (key.parse::<http::HeaderName>(), value.parse()) {
            self.0.insert(name, value);
        }
    }
}

struct HeaderReader<'a>(&'a HeaderMap);

impl Extractor for HeaderReader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// Writes the trace context of the current span into the headers of an outgoing call; a no-op without an exporter.
pub fn inject_context(headers: &mut HeaderMap) {
    global::get_text_map_propagator(|propagator| {
        if propagator.fields().next().is_some() {
            propagator.inject_context(&Span::current().context(), &mut HeaderWriter(headers));
        }
    });
}

/// Makes the span a child of the remote span in the headers (`traceparent`); a no-op without an exporter.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    global::get_text_map_propagator(|propagator| {
        if propagator.fields().next().is_some() {
            let parent = propagator.extract(&HeaderReader(headers));
            // An error means that the span is disabled by the filter.
            let _disabled = span.set_parent(parent);
        }
    });
}
