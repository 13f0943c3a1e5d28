//! Servers of their own for the tests, and the two programs that are compared.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

pub struct Redis {
    child: Child,
    pub port: u16,
    pub directory: tempfile::TempDir,
    options: Vec<String>,
}

impl Redis {
    pub fn start(options: &[&str]) -> Redis {
        let port = free_port();
        let directory = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = launch(port, &directory, &options);
        let redis = Redis { child, port, directory, options };
        redis.wait();
        redis
    }

    pub fn ask(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        send(&mut stream, words);
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(length) = line.strip_prefix('$').and_then(|n| n.trim().parse::<usize>().ok()) {
            let mut body = vec![0; length + 2];
            reader.read_exact(&mut body).unwrap();
            return String::from_utf8_lossy(&body[..length]).into_owned();
        }
        line.trim_end().to_owned()
    }

    /// Calls of a command since CONFIG RESETSTAT.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.ask(&["INFO", "commandstats"]);
        let prefix = format!("cmdstat_{command}:calls=");
        stats
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .and_then(|rest| rest.split(',').next())
            .map_or(0, |calls| calls.parse().unwrap())
    }

    pub fn monitor(&self) -> Monitor {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        send(&mut stream, &["MONITOR"]);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "+OK\r\n");
        Monitor { reader }
    }

    pub fn restart(&mut self) {
        self.stop();
        self.child = launch(self.port, &self.directory, &self.options);
        self.wait();
    }

    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        while self.ask(&["PING"]).is_empty() {}
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

pub struct Monitor {
    reader: BufReader<TcpStream>,
}

impl Monitor {
    /// The commands seen up to `ECHO end` from `redis`, without times and addresses; the
    /// programs' own questions included.
    pub fn commands(mut self, redis: &Redis) -> Vec<String> {
        redis.ask(&["ECHO", "end-of-test"]);
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).unwrap();
            let command = line.split_once("] ").map_or("", |(_, command)| command).trim_end();
            if command.contains("end-of-test") {
                return seen;
            }
            let database = line.split('[').nth(1).and_then(|rest| rest.split(' ').next());
            seen.push(format!("{} {command}", database.unwrap_or_default()));
        }
    }
}

pub fn ours(port: u16, options: &str) -> Output {
    ours_with(port, &words(options), "")
}

pub fn ours_with(port: u16, options: &[String], input: &str) -> Output {
    execute(our_program(), port, options, input)
}

pub fn theirs(port: u16, options: &str) -> Output {
    execute(PathBuf::from("/usr/bin/redis-benchmark"), port, &words(options), "")
}

pub fn our_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/benchmark")
}

pub fn spawn_ours(port: u16, options: &str) -> Child {
    Command::new(our_program())
        .args(["-p", &port.to_string()])
        .args(words(options))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn words(options: &str) -> Vec<String> {
    options.split_whitespace().map(str::to_owned).collect()
}

/// Output with everything that varies masked: numbers, progress, and how many rows there are.
pub fn shape(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let line = line.rsplit('\r').next().unwrap_or_default();
        let masked = mask(line);
        if masked.contains("% <= ") && lines.last() == Some(&masked) {
            continue;
        }
        lines.push(masked);
    }
    lines
}

fn mask(line: &str) -> String {
    let mut out = String::new();
    let is_table = line.starts_with("    ") && line.contains('.');
    for part in line.split_inclusive(|c: char| !c.is_ascii_digit() && c != '.') {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        if digits.contains('.') || line.contains("% <= ") {
            out.push_str(&"N".repeat(usize::from(!digits.is_empty())));
            out.push_str(&part[digits.len()..]);
        } else {
            out.push_str(part);
        }
    }
    if is_table { out.split_whitespace().collect::<Vec<_>>().join(" ") } else { out }
}

pub fn free_port() -> u16 {
    loop {
        let port = 10_000 + u16::try_from(std::process::id() % 2_000).unwrap() + counter();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn counter() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % 2_500
}

fn launch(port: u16, directory: &tempfile::TempDir, options: &[String]) -> Child {
    let log = fs::File::create(directory.path().join("log")).unwrap();
    Command::new("/usr/bin/redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1", "--dir"])
        .arg(directory.path())
        .args(options)
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .expect("Debian's redis-server is installed")
}

fn execute(program: PathBuf, port: u16, options: &[String], input: &str) -> Output {
    let mut child = Command::new(program)
        .args(["-p", &port.to_string()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn send(stream: &mut TcpStream, words: &[&str]) {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).unwrap();
}
