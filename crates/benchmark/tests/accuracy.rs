//! Figures checked against servers of known behaviour: a responder that delays its replies by a
//! known pattern, and one that stalls once.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::ours;

/// Answers each PING after `delay(n)`, where n counts the requests of the connection.
fn responder(delay: fn(u64) -> Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream, delay));
        }
    });
    port
}

fn answer(mut stream: TcpStream, delay: fn(u64) -> Duration) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = [0_u8; 4096];
    let mut count = 0;
    while let Ok(length) = stream.read(&mut buffer) {
        if length == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        for _ in 0..text.matches("CONFIG").count() {
            stream.write_all(b"*2\r\n$1\r\nx\r\n$1\r\ny\r\n").unwrap();
        }
        for _ in 0..text.matches("INFO").count() {
            stream.write_all(b"$0\r\n\r\n").unwrap();
        }
        for _ in 0..text.to_lowercase().matches("ping").count() {
            let due = Instant::now() + delay(count);
            count += 1;
            while Instant::now() < due {
                let left = due - Instant::now();
                if left > Duration::from_millis(1) {
                    thread::sleep(left - Duration::from_millis(1));
                }
            }
            if stream.write_all(b"+PONG\r\n").is_err() {
                return;
            }
        }
    }
}

fn figures(port: u16, options: &str) -> Value {
    let output = ours(port, &format!("--output json {options}"));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    report["tests"][0].clone()
}

#[test]
fn percentiles_of_a_known_distribution() {
    // Of each ten replies eight take 2 ms, one 10 ms and one 30 ms.
    let port = responder(|count| {
        Duration::from_millis(match count % 10 {
            4 => 10,
            9 => 30,
            _ => 2,
        })
    });
    let test = figures(port, "-c 1 -n 200 --percentiles 85 ping");
    let service = &test["service"];
    // Never below the truth; above it by what a busy machine adds.
    for (name, exact) in [("p50", 2.0), ("p85", 10.0), ("p95", 30.0)] {
        let value = service[name].as_f64().unwrap();
        assert!(value >= exact * 0.999, "{name} {value}");
        assert!(value < exact * 1.5 + 3.0, "{name} {value}");
    }
    assert!(service["avg"].as_f64().unwrap() >= 5.6);
}

#[test]
fn a_stall_follows_the_queue() {
    // One connection, 200 requests per second, each served at once, but the 100th after 500 ms.
    // The schedule goes on: of the requests due during the stall (100 of them) the k-th waits
    // 500 - 5k ms, so with 400 requests a quarter waits, evenly spread from 0 to 500 ms. A busy machine adds to that; the
    // exact figures are checked without clock and sockets in `engine::tests`.
    let port = responder(|count| Duration::from_millis(if count == 100 { 500 } else { 0 }));
    let test = figures(port, "-c 1 --rate 200 -n 400 --percentiles 80,87.5 ping");
    let response = &test["response"];
    let p875 = response["p875"].as_f64().unwrap();
    assert!((220.0..450.0).contains(&p875), "{response:#}");
    let max = response["max"].as_f64().unwrap();
    assert!((500.0..800.0).contains(&max), "{max}");
    let service = test["service"]["p99"].as_f64().unwrap();
    assert!(service < 100.0, "{service}");
}

#[test]
fn a_long_freeze_is_seen_in_full() {
    // redis-benchmark's histogram ends at 3 s; a freeze of 3.4 s must not look like one of 3.
    let port = responder(|count| Duration::from_millis(if count == 30 { 3_400 } else { 0 }));
    let test = figures(port, "-c 1 --rate 100 -n 450 ping");
    let (response, service) = (&test["response"], &test["service"]);
    let of = |summary: &Value, name: &str| summary[name].as_f64().unwrap();
    assert!(of(service, "max") >= 3_400.0 && of(response, "max") >= 3_400.0, "{test:#}");
    assert!(of(response, "p99") > 1_000.0, "{test:#}");
    assert!(of(service, "p99") < 200.0, "{test:#}");
}

#[test]
fn pipelined_replies_have_latencies_of_their_own() {
    // Replies come 5 ms apart, so the fourth of a batch takes 20 ms; a batch-wise figure would
    // give all four the latency of the first.
    let port = responder(|_| Duration::from_millis(5));
    let each = figures(port, "-c 1 -P 4 -n 40 ping");
    let max = each["service"]["p95"].as_f64().unwrap();
    assert!(max >= 20.0, "{max}");
    let batch = figures(port, "-c 1 -P 4 -n 40 --legacy-latency ping");
    let p50 = batch["service"]["p50"].as_f64().unwrap();
    assert!(p50 < 15.0, "{p50}");
}
