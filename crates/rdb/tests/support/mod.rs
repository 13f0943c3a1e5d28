//! A real Redis to compare with, on a Unix socket in a folder of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = "/usr/bin/redis-server";

/// A running server and a connection to it; both end with it.
pub(crate) struct Redis {
    child: Child,
    folder: PathBuf,
    stream: BufReader<UnixStream>,
}

/// A reply, as far as these tests need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Text(Vec<u8>),
    Error(String),
    Nil,
    Array(Vec<Reply>),
}

impl Redis {
    /// Starts a server; None where none is installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            eprintln!("skipped: no {SERVER}");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("oxidis-rdb-{name}-{}", std::process::id()));
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

    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> Reply {
        let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).unwrap();
        self.reply()
    }

    /// A call whose reply must be a text.
    pub(crate) fn text(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        match self.call(arguments) {
            Reply::Text(text) => text,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    /// A call whose reply must be an array of texts.
    pub(crate) fn texts(&mut self, arguments: &[&[u8]]) -> Vec<Vec<u8>> {
        match self.call(arguments) {
            Reply::Array(replies) => replies
                .into_iter()
                .map(|reply| match reply {
                    Reply::Text(text) => text,
                    other => panic!("{other:?}"),
                })
                .collect(),
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    fn reply(&mut self) -> Reply {
        let mut line = vec![];
        self.stream.read_until(b'\n', &mut line).unwrap();
        let line = line.strip_suffix(b"\r\n").expect("a reply line").to_vec();
        let rest = String::from_utf8_lossy(&line[1..]).into_owned();
        match (line[0], rest.as_str()) {
            (b'+' | b':', _) => Reply::Text(rest.into_bytes()),
            (b'-', _) => Reply::Error(rest),
            (b'$' | b'*', "-1") => Reply::Nil,
            (b'$', len) => {
                let mut text = vec![0; len.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                Reply::Text(text)
            }
            (b'*', len) => Reply::Array((0..len.parse::<usize>().unwrap()).map(|_| self.reply()).collect()),
            other => panic!("{other:?}"),
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
