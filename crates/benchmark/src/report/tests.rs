use std::time::Duration;

use super::*;

pub(crate) fn outcome() -> Outcome {
    let mut service = latency::recorder(3);
    service.saturating_record_n(100, 900);
    service.saturating_record_n(250, 90);
    service.saturating_record_n(2_600, 10);
    let mut outcome = Outcome::empty("SET", 3, 3);
    outcome.finished = 1_000;
    outcome.elapsed = Duration::from_millis(21);
    outcome.service = service;
    outcome.connected = 50;
    outcome.busiest_thread = 0.5;
    outcome
}

#[test]
fn text_of_one_server() {
    let config = ServerConfig { save: "3600 1".to_owned(), appendonly: "no".to_owned() };
    let server = Configuration::Standalone(Some(config));
    assert_eq!(
        text(&Options::default(), 0, &server, &outcome()),
        "\
====== SET ======
  1000 requests completed in 0.02 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1
  host configuration \"save\": 3600 1
  host configuration \"appendonly\": no
  multi-thread: no

Latency by percentile distribution:
0.000% <= 0.103 milliseconds (cumulative count 900)
93.750% <= 0.255 milliseconds (cumulative count 990)
99.219% <= 2.607 milliseconds (cumulative count 1000)
100.000% <= 2.607 milliseconds (cumulative count 1000)

Cumulative distribution of latencies:
90.000% <= 0.103 milliseconds (cumulative count 900)
99.000% <= 0.303 milliseconds (cumulative count 990)
100.000% <= 3.103 milliseconds (cumulative count 1000)

Summary:
  throughput summary: 47619.05 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.139     0.096     0.103     0.255     0.255     2.607
"
    );
}

#[test]
fn text_of_a_cluster_with_threads() {
    let config = ServerConfig { save: String::new(), appendonly: "yes".to_owned() };
    let server = Configuration::Cluster(vec![Some(config), None]);
    let text = text(&Options::default(), 2, &server, &outcome());
    let head: Vec<&str> = text.lines().skip(5).take(7).collect();
    assert_eq!(
        head,
        [
            "  cluster mode: yes (2 masters)",
            "  node [0] configuration:",
            "    save: NONE",
            "    appendonly: yes",
            "  multi-thread: yes",
            "  threads: 2",
            "",
        ]
    );
}

#[test]
fn one_line_forms() {
    let options = Options::default();
    assert_eq!(quiet(&options, &outcome()), "SET: 47619.05 requests per second, p50=0.103 msec\n");
    assert_eq!(
        csv(&options, &outcome()),
        "\"SET\",\"47619.05\",\"0.139\",\"0.096\",\"0.103\",\"0.255\",\"0.255\",\"2.607\"\n"
    );
}

#[test]
fn text_as_redis_4_printed_it() {
    assert_eq!(
        text_of_redis_4(&Options::default(), &outcome()),
        "\
====== SET ======
  1000 requests completed in 0.02 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1

99.00% <= 0 milliseconds
100.00% <= 2 milliseconds
100.00% <= 2 milliseconds
47619.05 requests per second

"
    );
    let options = Options { csv: true, ..Options::default() };
    assert_eq!(text_of_redis_4(&options, &outcome()), "\"SET\",\"47619.05\"\n");
}
