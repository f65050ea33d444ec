//! Logs, traces and metrics of a process.
//!
//! Logs are readable on a terminal and JSON otherwise; traces go out by OTLP when `OTEL_EXPORTER_OTLP_ENDPOINT` is set
//! and continue across every hop (W3C Trace Context); metrics are read from the admin port. A token, a cookie or a body
//! is never recorded.

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

/// Where the trace exporter sends to, when set.
const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Which logs are kept; the syntax is that of tracing's `EnvFilter`.
const LOG_FILTER: &str = "CAIRN_LOG";
/// Seconds; from a cached read to a call that ran into its deadline.
const DURATION_BUCKETS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];

/// At a thousand requests a second, what is kept until the next upkeep stays below a megabyte.
const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Telemetry could not be set up.
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
    /// Telemetry was set up before.
    #[error("telemetry is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Telemetry of this process; flushed by [`Telemetry::shutdown`].
#[derive(Debug)]
pub struct Telemetry {
    metrics: PrometheusHandle,
    traces: Option<SdkTracerProvider>,
}

/// Sets telemetry up, once a process, inside the runtime. `default_filter` holds when `CAIRN_LOG` is not set.
///
/// # Errors
/// When the environment names a filter or an exporter that cannot be used.
pub fn install(service: &'static str, default_filter: &str) -> Result<Telemetry, Error> {
    let filter = log_filter(default_filter)?;
    let traces = trace_exporter(service)?;
    let exported = traces.as_ref().map(|provider| {
        // What is exported does not depend on how chatty the log is.
        tracing_opentelemetry::layer().with_tracer(provider.tracer("cairn")).with_filter(LevelFilter::INFO)
    });
    tracing_subscriber::registry().with(log_layer().with_filter(filter)).with(exported).try_init()?;
    let metrics = PrometheusBuilder::new().set_buckets(&DURATION_BUCKETS)?.install_recorder()?;
    tokio::spawn(keep_metrics_small(metrics.clone()));
    Ok(Telemetry { metrics, traces })
}

/// What `CAIRN_LOG` says, or else that default.
///
/// # Errors
/// When it is no log filter.
pub fn log_filter(default: &str) -> Result<EnvFilter, Error> {
    let directives = set(LOG_FILTER);
    Ok(EnvFilter::try_new(directives.as_deref().unwrap_or(default))?)
}

/// What a variable is set to; set to nothing, it is not.
fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

/// Folds recorded values into their buckets, also when nobody reads the metrics: until then each one is kept.
async fn keep_metrics_small(metrics: PrometheusHandle) {
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
    if set(OTLP_ENDPOINT).is_none() {
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

    /// Sends what is still held back.
    pub fn shutdown(self) {
        if let Some(traces) = self.traces
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Something that is under way, counted in a gauge until it is dropped: what its caller has left ends, too.
#[derive(Debug)]
pub struct InFlight(&'static Gauge);

impl InFlight {
    /// One more is under way.
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

/// Writes the current span's trace context into the headers of an outgoing call; nothing without an exporter.
pub fn inject_context(headers: &mut HeaderMap) {
    global::get_text_map_propagator(|propagator| {
        if propagator.fields().next().is_some() {
            propagator.inject_context(&Span::current().context(), &mut HeaderWriter(headers));
        }
    });
}

/// Makes the span a child of the trace that the headers name (`traceparent`); nothing without an exporter.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    global::get_text_map_propagator(|propagator| {
        if propagator.fields().next().is_some() {
            let parent = propagator.extract(&HeaderReader(headers));
            // A span that is filtered out has no place for a parent.
            let _unrecorded = span.set_parent(parent);
        }
    });
}
