//! Key extraction against COMMAND GETKEYSANDFLAGS of a real server, if `/usr/bin/redis-server` is
//! there; skipped otherwise. The requests stand in `data/getkeys.txt`, one a line; `""` is an empty
//! argument.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use commands::table::command;
use resp::{Reply, Value};

const SERVER: &str = "/usr/bin/redis-server";
const REQUESTS: &str = include_str!("data/getkeys.txt");

/// A server of its own folder, reached by a Unix socket; ended when dropped.
struct Server {
    process: Child,
    folder: PathBuf,
}

impl Server {
    fn start() -> (Self, UnixStream) {
        let folder = std::env::temp_dir().join(format!("table-getkeys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("socket");
        let process = Command::new(SERVER)
            .args(["--port", "0", "--save", "", "--daemonize", "no", "--unixsocket"])
            .arg(&socket)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, folder };
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(&socket) {
                Ok(connection) => return (server, connection),
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn keys_equal_those_of_redis() {
    if !Path::new(SERVER).exists() {
        eprintln!("skipped: there is no {SERVER}");
        return;
    }
    let (_server, mut connection) = Server::start();
    let mut count = 0;
    let mut differences = Vec::new();
    for line in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words = line.split(' ').map(|word| if word == "\"\"" { b"" } else { word.as_bytes() });
        let mut args: Vec<&[u8]> = vec![b"command", b"getkeysandflags"];
        args.extend(words);
        let mut reply = Reply::new();
        command::get_keys_and_flags(args.as_slice(), &mut reply);
        let (ours, _) = resp::parse_reply(&reply.buf).unwrap().unwrap();
        if let Some(difference) = difference(&ours, &ask(&mut connection, &args)) {
            differences.push(format!("{line}: {difference}"));
        }
        count += 1;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(count >= 150, "only {count} requests");
}

fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    (ours != theirs).then(|| format!("ours {}, theirs {}", show(ours), show(theirs)))
}

fn show(value: &Value) -> String {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}

fn ask(connection: &mut UnixStream, args: &[&[u8]]) -> Value {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        request.extend_from_slice(arg);
        request.extend_from_slice(b"\r\n");
    }
    connection.write_all(&request).unwrap();
    let mut received = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let length = connection.read(&mut chunk).unwrap();
        assert!(length > 0, "the server closed the connection");
        received.extend_from_slice(&chunk[..length]);
        if let Some((value, _)) = resp::parse_reply(&received).unwrap() {
            return value;
        }
    }
}
