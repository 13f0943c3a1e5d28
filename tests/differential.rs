//! The same random commands to Oxidis and to redis-server: replies and final states are equal.

use testkit::differential::{self, Options};
use testkit::{Launch, Server};

/// Commands of a run; each case takes half.
const COMMANDS: u64 = 200_000;

fn run(protocol: u8, directives: &[&str]) {
    let options = Options {
        subject: Launch::oxidis().args(directives),
        peer: Launch::redis(),
        seed: testkit::seed(2024) * 1_000_000,
        commands: COMMANDS / 2,
        families: Vec::new(),
        protocol: Some(protocol),
        failures_max: 5,
        behind: Vec::new(),
    };
    check(&options);
}

fn check(options: &Options) {
    let report = match differential::run(options, |_| {}) {
        Ok(report) => report,
        Err(error) => panic!("{error}"),
    };
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    assert!(report.commands >= options.commands || !report.findings.is_empty());
    assert!(report.findings.is_empty(), "{} kinds of failure, see above", report.findings.len());
}

#[test]
fn resp2_on_one_worker() {
    run(2, &["--io-threads", "1"]);
}

#[test]
fn resp3_on_four_workers() {
    run(3, &["--io-threads", "4"]);
}

/// A proxy before a server answers as Redis does.
#[test]
fn through_the_proxy() {
    let server = Server::oxidis(&["--io-threads", "1"]);
    let ports = vec![server.port()];
    for protocol in [2, 3] {
        check(&Options {
            subject: Launch::proxy_over(&ports),
            peer: Launch::redis(),
            seed: testkit::seed(2024) * 1_000_000,
            commands: COMMANDS / 10,
            families: Vec::new(),
            protocol: Some(protocol),
            failures_max: 5,
            behind: ports.clone(),
        });
    }
}
