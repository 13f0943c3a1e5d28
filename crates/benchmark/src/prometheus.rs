//! `--prometheus ADDRESS`: counters of the running test for a scraper, over plain HTTP.
//!
//! One thread answers one request at a time with whatever the load threads last published; it
//! takes no part in the measurement. A bare port listens on the loopback interface only.

use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Figures that scrapers see. Counters start anew with each test.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Replies so far.
    pub(crate) finished: AtomicU64,
    /// Sum of their latencies, µs.
    pub(crate) latency_sum_us: AtomicU64,
    /// Connections.
    pub(crate) connected: AtomicU64,
    /// Errors so far.
    pub(crate) errors: AtomicU64,
    title: Mutex<String>,
}

impl Metrics {
    /// A test begins.
    pub(crate) fn begin(&self, title: &str) {
        title.clone_into(&mut self.title.lock().unwrap_or_else(PoisonError::into_inner));
        // Relaxed: a scrape between the stores shows a mixture for one interval at worst.
        self.finished.store(0, Ordering::Relaxed);
        self.latency_sum_us.store(0, Ordering::Relaxed);
        self.errors.store(0, Ordering::Relaxed);
    }

    fn text(&self) -> String {
        let title = self.title.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let title = title.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let finished = self.finished.load(Ordering::Relaxed);
        let sum = Duration::from_micros(self.latency_sum_us.load(Ordering::Relaxed));
        let connected = self.connected.load(Ordering::Relaxed);
        let mut out = String::new();
        let _ = write!(
            out,
            "# HELP oxidis_benchmark_requests_total Replies received in the running test.\n\
             # TYPE oxidis_benchmark_requests_total counter\n\
             oxidis_benchmark_requests_total{{test=\"{title}\"}} {finished}\n\
             # HELP oxidis_benchmark_latency_seconds_total Sum of their latencies.\n\
             # TYPE oxidis_benchmark_latency_seconds_total counter\n\
             oxidis_benchmark_latency_seconds_total{{test=\"{title}\"}} {:.6}\n\
             # HELP oxidis_benchmark_errors_total Error replies and failures of them.\n\
             # TYPE oxidis_benchmark_errors_total counter\n\
             oxidis_benchmark_errors_total{{test=\"{title}\"}} {}\n\
             # HELP oxidis_benchmark_connections Connections that stand.\n\
             # TYPE oxidis_benchmark_connections gauge\n\
             oxidis_benchmark_connections {connected}\n",
            sum.as_secs_f64(),
            self.errors.load(Ordering::Relaxed),
        );
        out
    }
}

/// Starts to answer on `address` (`host:port`, or a port on the loopback interface).
pub(crate) fn serve(address: &str, metrics: Arc<Metrics>) -> Result<SocketAddr, String> {
    let address = if address.contains(':') { address.to_owned() } else { format!("127.0.0.1:{address}") };
    let failed = |error: io::Error| format!("Error: cannot serve metrics on {address}: {error}");
    let listener = TcpListener::bind(&address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            // Ends with the process; a scraper that misbehaves is dropped by its time limit.
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &metrics);
            }
        })
        .map_err(failed)?;
    Ok(bound)
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> io::Result<()> {
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    let mut request = [0_u8; REQUEST_BYTES_MAX];
    let mut length = 0;
    while !request[..length].windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut request[length..])?;
        if read == 0 {
            return Ok(());
        }
        length += read;
    }
    let is_metrics = request.starts_with(b"GET /metrics ");
    let (status, body) =
        if is_metrics { ("200 OK", metrics.text()) } else { ("404 Not Found", "Try /metrics\n".to_owned()) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

const TIME_LIMIT: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn metrics_are_served() {
        let metrics = Arc::new(Metrics::default());
        metrics.begin("GET \"x\"");
        metrics.finished.store(42, Ordering::Relaxed);
        let address = serve("0", Arc::clone(&metrics)).unwrap();
        assert!(address.ip().is_loopback());
        let reply = get(address, "/metrics");
        assert!(reply.starts_with("HTTP/1.1 200 OK"));
        assert!(reply.contains("oxidis_benchmark_requests_total{test=\"GET \\\"x\\\"\"} 42\n"));
        assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    }
}
