//! INCRBYFLOAT's sums and texts against the installed Redis: 2,000 random steps and as many odd texts.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use resp::num::{LongDouble, parse_f64, parse_score_bound};

const SERVER: &str = "/usr/bin/redis-server";

struct Redis {
    child: Child,
    folder: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Redis {
    fn start(name: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            eprintln!("skipped: no {SERVER}");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("oxidis-num-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("socket");
        let child = Command::new(SERVER)
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "redis-server did not listen: {error}"),
            }
            std::thread::yield_now();
        };
        Some(Self { child, folder, stream: BufReader::new(stream) })
    }

    /// The reply's text, or the error.
    fn call(&mut self, arguments: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let line = line.trim_end();
        match line.split_at(1) {
            ("-", error) => Err(error.to_owned()),
            ("$", len) => {
                let mut text = vec![0; len.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                Ok(text)
            }
            (_, text) => Ok(text.as_bytes().to_vec()),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A small generator, so that the crate needs no other for one test.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs());
        println!("SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn increment(&mut self) -> String {
        let sign = if self.below(2) == 0 { "-" } else { "" };
        let longest = u32::try_from(self.below(16)).unwrap() + 1;
        let digits = self.below(10_u64.pow(longest));
        match self.below(6) {
            0 => format!("{sign}{digits}"),
            1 => format!("{sign}{digits}e{}", i64::try_from(self.below(60)).unwrap() - 40),
            2 => format!("{sign}0x{digits:x}.{:x}p{}", self.below(4096), i64::try_from(self.below(90)).unwrap() - 60),
            3 => format!("{sign}0.{digits:018}"),
            _ => format!("{sign}{}.{digits}", self.below(100_000)),
        }
    }

    fn odd_text(&mut self) -> Vec<u8> {
        const PIECES: [&str; 24] = [
            "1",
            "0",
            "9",
            ".",
            "e",
            "-",
            "+",
            "x",
            "p",
            "inf",
            "infinity",
            "nan",
            " ",
            "12345678901234567890",
            "e400",
            "e-400",
            "e5000",
            "e-5000",
            "0x",
            "f",
            "INF",
            "\t",
            "\0",
            "_",
        ];
        (0..=self.below(5)).flat_map(|_| PIECES[usize::try_from(self.below(24)).unwrap()].bytes()).collect()
    }
}

#[test]
fn increments_give_the_same_digits() {
    let Some(mut redis) = Redis::start("increments") else { return };
    let mut random = Random::new();
    let mut sum = LongDouble::from_i64(0);
    redis.call(&[b"SET", b"k", b"0"]).unwrap();
    for step in 0..2000 {
        if step % 7 == 0 {
            let start = random.increment();
            redis.call(&[b"SET", b"k", start.as_bytes()]).unwrap();
            sum = LongDouble::parse(start.as_bytes()).unwrap();
        }
        let increment = random.increment();
        let theirs = redis.call(&[b"INCRBYFLOAT", b"k", increment.as_bytes()]).unwrap();
        let ours = sum.add(LongDouble::parse(increment.as_bytes()).unwrap()).to_human();
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "step {step}: + {increment}");
        // The next step reads the text, as Redis does.
        sum = LongDouble::parse(&ours).unwrap();
    }
}

#[test]
fn odd_texts_are_taken_or_refused_alike() {
    let Some(mut redis) = Redis::start("texts") else { return };
    let mut random = Random::new();
    for _ in 0..2000 {
        let text = random.odd_text();
        let shown = String::from_utf8_lossy(&text).into_owned();
        redis.call(&[b"DEL", b"k", b"z"]).unwrap();
        let theirs = redis.call(&[b"INCRBYFLOAT", b"k", &text]).ok();
        // An infinite sum is refused after the text was taken.
        let ours = LongDouble::parse(&text).filter(|value| !value.is_inf()).map(LongDouble::to_human);
        assert_eq!(ours, theirs, "increment {shown:?}");
        let theirs = redis.call(&[b"ZADD", b"z", &text, b"m"]).is_ok();
        assert_eq!(parse_f64(&text).is_some(), theirs, "score {shown:?}");
        let theirs = redis.call(&[b"ZCOUNT", b"z", &text, b"+inf"]).is_ok();
        assert_eq!(parse_score_bound(&text).is_some(), theirs, "range {shown:?}");
    }
}
