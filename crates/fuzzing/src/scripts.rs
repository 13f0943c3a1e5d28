//! The libraries of scripts that read bytes: JSON, MessagePack, packed structures.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use resp::{Args, Reply};
use script::{Ended, Host, Kind, LogLevel, Refused, Run, Script, Sha, Tick, Vm, VmLimits};

/// Memory of the interpreter.
const MEMORY_MAX: usize = 64 << 20;
/// After this a script would have been killed.
const LONGEST: Duration = Duration::from_millis(900);

/// A host without commands that ends what takes too long.
struct Watch(Instant);

impl Host for Watch {
    fn call(&mut self, _args: &[&[u8]], _resp3: bool, _reply: &mut Vec<u8>) -> Result<(), Refused> {
        Err(Refused::Error("there are no commands here".into()))
    }

    fn tick(&mut self) -> Tick {
        if self.0.elapsed() > LONGEST { Tick::Kill } else { Tick::Continue }
    }

    fn log(&mut self, _level: LogLevel, _message: &[u8]) {}

    fn log_level(&self) -> LogLevel {
        LogLevel::Warning
    }

    fn acl_allows(&mut self, _args: &[&[u8]]) -> Option<bool> {
        None
    }

    fn set_replication(&mut self, _to_aof: bool, _to_replicas: bool) {}
}

thread_local! {
    static VM: RefCell<Option<Vm>> = const { RefCell::new(None) };
}

/// Runs a script with the bytes as its arguments; any end but a panic is fine.
fn run(code: &str, arguments: &[&[u8]]) {
    VM.with_borrow_mut(|place| {
        if place.as_ref().is_none_or(Vm::is_worn) {
            *place = Vm::new(Kind::Eval, VmLimits { memory_max: MEMORY_MAX }).ok();
        }
        let Some(vm) = place.as_mut() else { panic!("no interpreter") };
        let sha = Sha::of(code.as_bytes());
        let Ok(script) = Script::new(sha, code.as_bytes()) else { panic!("{code} is no script") };
        let Ok(function) = vm.compile(&script) else { panic!("{code} does not compile") };
        let args = Args::from_slices(arguments);
        let mut out = Reply::new();
        let name = "f".repeat(40);
        match vm.eval(&mut Watch(Instant::now()), &function, Run { args, keys: 0, name: &name }, &mut out) {
            Ended::Done(_) | Ended::Failed(_) => {}
            Ended::Restart => panic!("nobody asked for a new run"),
        }
    });
}

pub(crate) const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\"",
    b"\\u0041",
    b"\\ud800\\udc00",
    b"null",
    b"true",
    b"1e308",
    b"-0",
    b"nan",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xcb",
    b">I4",
    b"<i8",
    b"s",
    b"c0",
    b"!8",
];

/// Text that is decoded, and what it is encoded again.
pub(crate) fn cjson(data: &[u8]) {
    run("local value = cjson.decode(ARGV[1]) return #cjson.encode(value)", &[data]);
}

pub(crate) fn cjson_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"a": [1, 2.5, -3e10, "text \u00e9 \n"], "b": {"c": null, "d": true}}"#,
        r#"[[[[[[]]]]], {}, "", 0, 123456789012345678901234567890]"#,
        r#""\ud83d\ude00 and \\ \/""#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Bytes that are unpacked, one value after the other, and packed again.
pub(crate) fn cmsgpack(data: &[u8]) {
    run("local all = {cmsgpack.unpack(ARGV[1])} return #cmsgpack.pack(unpack(all))", &[data]);
    run("local next, value = cmsgpack.unpack_one(ARGV[1], 0) return next", &[data]);
}

pub(crate) fn cmsgpack_seeds() -> Vec<Vec<u8>> {
    [
        b"\x93\x01\xa3abc\xc0".as_slice(),
        b"\x82\xa1a\xcb\x3f\xf8\0\0\0\0\0\0\xa1b\x91\xc3",
        b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd3\x80\0\0\0\0\0\0\0",
        b"\xdc\0\x02\x01\x02\xde\0\x01\x01\x02\xd9\x03abc\xc4\x02xy",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// A format and bytes, parted by a zero byte.
pub(crate) fn structs(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (format, bytes) = (data.get(..at).unwrap_or_default(), data.get(at + 1..).unwrap_or_default());
    run("return {struct.unpack(ARGV[1], ARGV[2])}", &[format, bytes]);
    run("return struct.size(ARGV[1])", &[format, bytes]);
    run("return struct.pack(ARGV[1], 1, 2, 'text', 4)", &[format, bytes]);
}

pub(crate) fn structs_seeds() -> Vec<Vec<u8>> {
    [b">I2i4s\0\x01\x02\x03\x04\x05\x06text\0".as_slice(), b"<!8bhldf\0\x01\x02\x03", b"=c0B\0abc", b"xI16\0"]
        .map(<[u8]>::to_vec)
        .to_vec()
}
