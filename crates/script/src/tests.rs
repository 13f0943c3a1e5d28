//! Scripts against a host of a few commands: the sandbox, the libraries, the ends of scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod libraries;
mod modules;
mod sandbox;

use crate::host::{Host, LogLevel, Refused, Tick};
use crate::{Ended, Kind, Run, Script, Sha, Vm, VmLimits};
use resp::{Args, Proto, Reply};
use std::time::{Duration, Instant};

/// A host that echoes, counts its ticks and kills when its time is over.
pub(super) struct TestHost {
    pub(super) until: Option<Instant>,
    pub(super) logged: Vec<String>,
    pub(super) calls: usize,
}

impl Host for TestHost {
    fn call(&mut self, args: &[&[u8]], resp3: bool, reply: &mut Vec<u8>) -> Result<(), Refused> {
        self.calls += 1;
        let mut out = Reply::with_buffer(std::mem::take(reply), if resp3 { Proto::Resp3 } else { Proto::Resp2 });
        match args[0] {
            b"echo" => out.bulk(args[1]),
            b"int" => out.int(7),
            b"status" => out.simple("PONG"),
            b"nil" => out.null(),
            b"list" => {
                out.array(3);
                out.bulk("a");
                out.int(1);
                out.null();
            }
            b"map" => {
                out.map(1);
                out.bulk("k");
                out.double(1.5);
            }
            b"set" => {
                out.set(1);
                out.bulk("m");
            }
            b"bool" => out.bool(true),
            b"verbatim" => out.verbatim("text", "txt"),
            b"big" => out.big_number("123456789012345678901234567890"),
            b"fail" => out.error("WRONGTYPE not that"),
            b"restart" => return Err(Refused::Restart),
            _ => return Err(Refused::Error("Unknown Redis command called from script".into())),
        }
        *reply = out.take();
        Ok(())
    }

    fn tick(&mut self) -> Tick {
        if self.until.is_some_and(|until| Instant::now() >= until) { Tick::Kill } else { Tick::Continue }
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.logged.push(format!("{level:?} {}", String::from_utf8_lossy(message)));
    }

    fn log_level(&self) -> LogLevel {
        LogLevel::Notice
    }

    fn acl_allows(&mut self, args: &[&[u8]]) -> Option<bool> {
        (args[0] == b"echo").then_some(true)
    }

    fn set_replication(&mut self, _to_aof: bool, _to_replicas: bool) {}
}

pub(super) const MEMORY_MAX: usize = 64 << 20;

pub(super) fn host() -> TestHost {
    TestHost { until: None, logged: Vec::new(), calls: 0 }
}

pub(super) fn vm() -> Vm {
    Vm::new(Kind::Eval, VmLimits { memory_max: MEMORY_MAX }).unwrap()
}

/// Runs a script; the bytes of its reply, or of its error with `-` before it. The SHA-1 in errors becomes `SHA`.
pub(super) fn run_in(
    vm: &mut Vm,
    host: &mut TestHost,
    body: &str,
    args: &[&[u8]],
    keys: usize,
    proto: Proto,
) -> String {
    let sha = Sha::of(body.as_bytes());
    let script = match Script::new(sha, body.as_bytes()) {
        Ok(script) => script,
        Err(text) => return format!("-ERR {text}"),
    };
    let function = match vm.compile(&script) {
        Ok(function) => function,
        Err(text) => return format!("-ERR Error compiling script (new function): {text}"),
    };
    let mut out = Reply::with_buffer(Vec::new(), proto);
    let run = Run { args: Args::from_slices(args), keys, name: sha.as_str() };
    let bytes = match vm.eval(host, &function, run, &mut out) {
        Ended::Done(_) => out.take(),
        Ended::Failed(failure) => [b"-", failure.text.as_slice()].concat(),
        Ended::Restart => b"restart".to_vec(),
    };
    String::from_utf8_lossy(&bytes).replace(sha.as_str(), "SHA").replace("\r\n", "|")
}

pub(super) fn run(body: &str) -> String {
    run_in(&mut vm(), &mut host(), body, &[], 0, Proto::Resp2)
}

/// A script and its reply, CR LF as `|`.
#[track_caller]
pub(super) fn check(body: &str, wanted: &str) {
    assert_eq!(run(body), wanted, "{body}");
}

/// A script and the error it ends with, without the place.
#[track_caller]
pub(super) fn check_error(body: &str, wanted: &str) {
    check(body, &format!("-ERR {wanted} script: SHA, on @user_script:1."));
}

/// A script that would run for ever ends soon after it is told to.
#[track_caller]
pub(super) fn check_killed(body: &str) {
    let mut host = host();
    host.until = Some(Instant::now() + Duration::from_millis(100));
    let mut vm = vm();
    let reply = run_in(&mut vm, &mut host, body, &[], 0, Proto::Resp2);
    let late = host.until.unwrap().elapsed();
    assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{body}: {reply}");
    assert!(late < Duration::from_secs(1), "{body}: {late:?} after the kill");
    // The interpreter is as good as new.
    host.until = None;
    assert_eq!(
        run_in(&mut vm, &mut host, "local n = 0 for i = 1, 100000 do n = n + 1 end return n", &[], 0, Proto::Resp2),
        ":100000|"
    );
}
