//! Reports and what is seen while a test runs.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;
use support::{Redis, our_program, ours, words};

fn schema() -> Value {
    serde_json::from_str(include_str!("../schema/benchmark-report.json")).unwrap()
}

/// Compares a value with the part of JSON Schema that ours uses.
fn validate(root: &Value, schema: &Value, value: &Value, path: &str) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(name.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{name}"));
        return validate(root, target, value, path);
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let chosen = if value.is_null() { &choices[0] } else { &choices[1] };
        return validate(root, chosen, value, path);
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{path}");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        assert!(values.contains(value), "{path}: {value}");
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(kind) => vec![kind.as_str().unwrap()],
        None => Vec::new(),
    };
    let fits = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{path}: the test knows no type {other}"),
    };
    assert!(kinds.is_empty() || kinds.iter().any(fits), "{path}: {value} is none of {kinds:?}");
    if let Some(object) = value.as_object() {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{path} has no {name}");
        }
        for (name, inner) in object {
            let known = schema.get("properties").and_then(|properties| properties.get(name));
            match (known, schema.get("additionalProperties")) {
                (Some(known), _) => validate(root, known, inner, &format!("{path}/{name}")),
                (None, Some(Value::Bool(false))) => panic!("{path}: the schema does not know {name}"),
                (None, Some(other)) => validate(root, other, inner, &format!("{path}/{name}")),
                (None, None) => {}
            }
        }
    }
    if let (Some(list), Some(items)) = (value.as_array(), schema.get("items")) {
        for (index, inner) in list.iter().enumerate() {
            validate(root, items, inner, &format!("{path}/{index}"));
        }
    }
}

#[test]
fn the_json_report_is_that_of_its_schema() {
    let (redis, other) = (Redis::start(&[]), Redis::start(&[]));
    redis.ask(&["SET", "text", "x"]);
    let target = format!("127.0.0.1:{},127.0.0.1:{}", redis.port, other.port);
    for options in [
        "-t set,get -n 500".to_owned(),
        "--rate 2000 --duration 500ms --timeline 100ms --mix set=1,get=1 -r 10".to_owned(),
        "--on-error count -n 20 incr text".to_owned(),
        format!("--target {target} -n 500 -t get --percentiles 12.5,99.999"),
    ] {
        let output = ours(redis.port, &format!("--output json {options}"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e} {output:?}"));
        validate(&schema(), &schema(), &report, "");
    }
}

#[test]
fn targets_have_rows() {
    let (one, two) = (Redis::start(&[]), Redis::start(&[]));
    let target = format!("127.0.0.1:{},127.0.0.1:{}", one.port, two.port);
    for policy in ["rr", "split"] {
        for redis in [&one, &two] {
            redis.ask(&["CONFIG", "RESETSTAT"]);
        }
        let output = ours(
            1,
            &format!(
                "--target {target} --target-policy {policy} --output json -c 9 --per-client 20 --threads 2 -t set"
            ),
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e} {output:?}"));
        let rows = report["tests"][0]["per_target"].as_array().unwrap().clone();
        let figure = |name: &str| -> Vec<u64> { rows.iter().map(|row| row[name].as_u64().unwrap()).collect() };
        assert_eq!(figure("clients"), [5, 4], "{policy}");
        assert_eq!(figure("requests"), [100, 80], "{policy}");
        assert_eq!([one.calls("set"), two.calls("set")], [100, 80], "{policy}");
    }
    let text = ours(1, &format!("--target {target} -n 200 -t lpush -q"));
    assert!(String::from_utf8_lossy(&text.stdout).contains("targets:"), "{text:?}");
    assert!(String::from_utf8_lossy(&text.stderr).contains("LPUSH send everything to one key"), "{text:?}");
}

#[test]
fn steps_of_clients_and_the_time_after() {
    let redis = Redis::start(&[]);
    let output = ours(redis.port, "--ramp-clients 1:5:2:200ms --output csv-ext -t get");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    let heads: Vec<&str> = lines[0].split(',').collect();
    let after: Vec<&str> = heads[8..].to_vec();
    let wanted = "\"clients\",\"threads\",\"pipeline\",\"size\",\"requests\",\"seconds\",\"errors\",\"p90_ms\",\"p999_ms\",\
                  \"stddev_ms\",\"bytes_rx\",\"bytes_tx\",\"response_p99_ms\",\"p99.99_ms\"";
    assert_eq!(after.join(","), wanted);
    for (line, clients) in lines[1..].iter().zip(["1", "3", "5"]) {
        assert!(line.starts_with(&format!("\"GET @ {clients} clients\"")), "{line}");
        assert_eq!(line.split(',').count(), heads.len(), "{line}");
        assert_eq!(line.split(',').nth(8), Some(format!("\"{clients}\"").as_str()), "{line}");
    }
    redis.ask(&["CONFIG", "RESETSTAT"]);
    let output = ours(redis.port, "--duration 300ms --cooldown 500ms --output json -c 2 -t get");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let test = &report["tests"][0];
    assert!((0.29..0.4).contains(&test["seconds"].as_f64().unwrap()), "{test:#}");
    let counted = test["requests"].as_u64().unwrap();
    assert!(redis.calls("get") > counted + counted / 2, "{} {counted}", redis.calls("get"));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("report.html");
    let options =
        format!("--output html -o {} --rate 3000 --duration 600ms --timeline 100ms -t set,get", file.display());
    assert!(ours(redis.port, &options).status.success());
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{page}");
    // Bars of both tests; percentiles, rate and latency of each.
    assert_eq!(page.matches("<svg ").count(), 7);
    assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
    for part in ["src=", "href=", "@import", "url(", "<script"] {
        assert!(!page.contains(part), "{part}");
    }
    let with_markup = ours(redis.port, "--output html -n 5 --on-error count foo <b>x</b>");
    let page = String::from_utf8_lossy(&with_markup.stdout).into_owned();
    assert!(page.contains("foo &lt;b&gt;x&lt;/b&gt;") && !page.contains("<b>x</b>"), "{page}");
    assert!(page.contains("<h3>Errors</h3>"), "{page}");
}

#[test]
fn the_histogram_log_has_a_line_a_second() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("log.hdr");
    let options = format!("-q --duration 2200ms --rate 1000 --hdr-log {} -t get", file.display());
    assert!(ours(redis.port, &options).status.success());
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Tag=GET,")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(text.starts_with('#') && text.contains("StartTime"), "{text}");
}

#[test]
fn a_failed_run_reports_what_it_had_measured() {
    let mut redis = Redis::start(&[]);
    let child = support::spawn_ours(redis.port, "--output json --duration 20s -t set");
    while redis.calls("set") < 1_000 {
        thread::sleep(Duration::from_millis(10));
    }
    redis.stop();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e} {output:?}"));
    let test = &report["tests"][0];
    assert!(test["requests"].as_u64().unwrap() >= 900, "{test:#}");
    assert!(test["flags"].as_array().unwrap().iter().any(|flag| flag == "aborted"), "{test:#}");
}

/// Runs ours on a terminal of its own; types each text when what it waits for has been shown.
fn on_terminal(port: u16, options: &str, keys: &[(&str, &str)]) -> (Option<i32>, String) {
    let command = format!("{} -p {port} {options}", our_program().display());
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    let mut chunk = [0; 4096];
    let mut keys = keys.iter();
    let mut next = keys.next();
    let mut seen = 0;
    loop {
        let length = stdout.read(&mut chunk).unwrap();
        if length == 0 {
            break;
        }
        shown.extend_from_slice(&chunk[..length]);
        while let Some((awaited, text)) = next {
            let new = String::from_utf8_lossy(&shown[seen..]).into_owned();
            if !new.contains(awaited) {
                break;
            }
            seen = shown.len();
            stdin.write_all(text.as_bytes()).unwrap();
            next = keys.next();
        }
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn keys_of_the_live_view() {
    let redis = Redis::start(&[]);
    let keys = [("TPS", "h"), ("until p is pressed again", "q")];
    let (code, shown) = on_terminal(redis.port, "--tui yes --duration 20s -q -t get", &keys);
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("GET: "), "the figures are reported: {shown}");
    redis.ask(&["CONFIG", "RESETSTAT"]);
    // While it rests nothing is sent, and the time of the test stands still.
    let keys = [(" 0.", "p"), ("PAUSED", ""), ("PAUSED", ""), ("PAUSED", ""), ("PAUSED", ""), ("PAUSED", "p")];
    let (code, shown) = on_terminal(redis.port, "--tui yes --duration 1500ms --rate 500 -q -t get", &keys);
    assert_eq!(code, Some(0), "{shown}");
    let calls = redis.calls("get");
    assert!((740..=760).contains(&calls), "{calls} of 750: {shown}");
}

#[test]
fn every_task_has_help() {
    let full = String::from_utf8_lossy(&ours(1, "--help").stdout).into_owned();
    for task in words("load keys replay agents errors reports machine mix") {
        let text = String::from_utf8_lossy(&ours(1, &format!("--help {task}")).stdout).into_owned();
        assert!(text.lines().count() >= 3 && text.len() < full.len() / 2, "{task}: {text}");
    }
}
