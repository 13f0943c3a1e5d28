//! B3L: mutated inputs for what reads small languages of its own: Lua's libraries, ACL rules, patterns.
//!
//! They go through sockets in pipelines, to the parsers as the server holds them; each reply must come, and the server
//! must neither end nor grow.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use testkit::{Client, process};

use super::{Context, ensure_alive, mebibytes};

/// Inputs in one pipeline.
const BATCH: usize = 500;
/// An input grows no longer.
const LENGTH_MAX: usize = 256;
/// What the server may grow by.
const GROWTH_MAX: u64 = 64 << 20;

/// What reads the inputs.
struct Reader {
    name: &'static str,
    /// A script of two arguments, or a command with `%` in the input's place.
    how: How,
    seeds: &'static [&'static [u8]],
}

enum How {
    Script(&'static str),
    Command(&'static [&'static str]),
}

const READERS: &[Reader] = &[
    Reader {
        name: "cjson",
        how: How::Script(
            "local ok, value = pcall(cjson.decode, ARGV[1]) if ok then pcall(cjson.encode, value) end return 1",
        ),
        seeds: &[
            br#"{"a":[1,2.5,-1e10,true,null,"\u00e9\ud83d\ude00"],"b":{"c":{}}}"#,
            br#"[[[[[[[[1]]]]]]]]"#,
            br#""\"\\\/\b\f\n\r\t""#,
            b"[1,0x10,nan,Infinity,-0,1e400,123456789012345678901234567890]",
        ],
    },
    Reader {
        name: "cmsgpack",
        how: How::Script(
            "local ok, value = pcall(cmsgpack.unpack, ARGV[1]) if ok then pcall(cmsgpack.pack, value) end \
             pcall(cmsgpack.unpack_limit, ARGV[1], 3, #ARGV[2]) return 1",
        ),
        seeds: &[
            b"\x93\x01\x02\x03",
            b"\x82\xa1a\x01\xa1b\x92\xc2\xc3",
            b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00",
            b"\xdb\x00\x00\x00\x05hello\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff",
            b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
        ],
    },
    Reader {
        name: "struct",
        how: How::Script(
            "pcall(struct.unpack, ARGV[1], ARGV[2]) pcall(struct.pack, ARGV[1], 1, 2, ARGV[2], 4) \
             pcall(struct.size, ARGV[1]) return 1",
        ),
        seeds: &[b">I2hlLs", b"<i4c5c0xbB", b"=!8dfT", b"!16 i8", b"c2147483647", b"I33"],
    },
    Reader {
        name: "Lua's patterns",
        how: How::Script(
            "pcall(string.find, ARGV[2], ARGV[1]) pcall(string.match, ARGV[2], ARGV[1], -3) \
             pcall(string.gsub, ARGV[2], ARGV[1], ARGV[1], 5) pcall(string.format, ARGV[1], 1, 2, ARGV[2]) return 1",
        ),
        seeds: &[b"^(%w+)%s*=%s*(.-)$", b"%b()%f[%a]", b"[^%d-z]+[]]", b"(()%1)", b"%5.3f %q %-10s %c %g %x"],
    },
    Reader {
        name: "Lua's parser",
        how: How::Script("pcall(loadstring, ARGV[1]) return 1"),
        seeds: &[
            b"local a = {1, 2, x = function(...) return ... end} for i = 1, #a do a[i] = -a[i] ^ 2 end",
            b"return [==[ long ]==] .. 'a\\065\\n' --[[ comment ]]",
            b"while true do if a then break elseif b then goto x end repeat local f <const> = 1 until f end",
            b"\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00",
        ],
    },
    Reader {
        name: "ACL rules",
        how: How::Command(&["ACL", "SETUSER", "fuzzed", "%"]),
        seeds: &[
            b"%R~a*",
            b"%RW~*",
            b"(+get ~a* &c)",
            b"+config|get",
            b"-@dangerous",
            b">password",
            b"#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            b"~[a-z]*",
            b"+select|0",
        ],
    },
    Reader {
        name: "glob patterns",
        how: How::Command(&["SCAN", "0", "MATCH", "%"]),
        seeds: &[b"*a*b*c*", b"[^a-z]?\\*", b"[a-", b"\\", b"**[]]**", b"h?llo*[0-9]"],
    },
];

/// B3L.
pub(super) fn mutated(context: &Context<'_>) -> Result<String> {
    let seed = std::env::var("OXIDIS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = context.pick(1_000, 10_000_000);
    let mut server = context.server(&["--io-threads", "2"])?;
    let mut rates = Vec::new();
    for reader in READERS {
        let mut client = server.client();
        client.set_timeout(Duration::from_secs(60))?;
        client.run("MSET abc 1 hello 2 xyz 3");
        let before = process::resident_bytes(server.pid())?;
        let started = Instant::now();
        feed(&mut client, reader, count, seed).with_context(|| format!("OXIDIS_SEED={seed}: {}", reader.name))?;
        ensure_alive(&mut server).with_context(|| format!("OXIDIS_SEED={seed}: {}", reader.name))?;
        let grown = process::resident_bytes(server.pid())?.saturating_sub(before);
        ensure!(grown < GROWTH_MAX, "{}: the server grew by {:.0} MiB", reader.name, mebibytes(grown));
        rates.push(count as f64 / started.elapsed().as_secs_f64() / 1e3);
    }
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(format!("{} readers, {count} inputs each, at {slowest:.0} k/s and more", READERS.len()))
}

fn feed(client: &mut Client, reader: &Reader, count: usize, seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let head: Vec<Vec<u8>> = match reader.how {
        How::Script(text) => {
            let sha = client.call(&["SCRIPT", "LOAD", text])?;
            ensure!(!sha.is_error(), "SCRIPT LOAD: {sha}");
            vec![b"EVALSHA".to_vec(), sha.text().into_bytes(), b"0".to_vec()]
        }
        How::Command(words) => words[..words.len() - 1].iter().map(|word| word.as_bytes().to_vec()).collect(),
    };
    let mut sent = 0;
    while sent < count {
        let batch: Vec<Vec<Vec<u8>>> = (0..BATCH.min(count - sent))
            .map(|_| {
                let mut call = head.clone();
                call.push(mutate(&mut random, reader.seeds));
                if matches!(reader.how, How::Script(_)) {
                    call.push(mutate(&mut random, reader.seeds));
                }
                call
            })
            .collect();
        for (reply, call) in client.pipeline(&batch)?.iter().zip(&batch) {
            let is_fine = matches!(reader.how, How::Command(_)) || reply.integer() == Some(1);
            ensure!(is_fine, "{:?} is answered by {reply}", String::from_utf8_lossy(&call[call.len() - 2]));
        }
        sent += batch.len();
    }
    Ok(())
}

/// An input near one of the seeds.
fn mutate(random: &mut Rng, seeds: &[&[u8]]) -> Vec<u8> {
    let mut input = seeds[random.usize(..seeds.len())].to_vec();
    for _ in 0..random.usize(0..6) {
        let at = random.usize(..=input.len());
        match random.u8(0..6) {
            0 if at < input.len() => input[at] ^= 1 << random.u8(0..8),
            1 if at < input.len() => {
                input.remove(at);
            }
            2 => input.insert(at, random.u8(..)),
            3 => {
                let other = seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                input.splice(at..at, other[from..].iter().copied());
            }
            4 => {
                let piece = input[at..].to_vec();
                for _ in 0..random.u8(1..8) {
                    input.extend_from_slice(&piece);
                }
            }
            _ => input.truncate(at),
        }
        input.truncate(LENGTH_MAX);
    }
    input
}
