//! Decoders of bytes that come from clients, files and peers, each as a function of bytes that must never panic, hang or
//! take memory beyond a small multiple of its input, and whose own rules (what was read can be written and read again,
//! pieces give what the whole gives) hold for whatever it accepts.
//!
//! Two things run them: `cargo run -p fuzzing` mutates seeds at random (the binary of this crate; `cargo xtask hostile
//! --row B3` calls it), and the folder `fuzz` of the project has a libFuzzer program for each, for `cargo fuzz`.
//!
//! A target is a row of [`TARGETS`]: add one with its function and its seeds.
#![forbid(unsafe_code)]

pub mod mutate;
mod protocol;
mod scripts;
mod settings;
mod storage;
#[cfg(test)]
mod tests;
mod values;

/// One decoder under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line, and that of its libFuzzer program.
    pub name: &'static str,
    /// Takes any bytes; panics when a rule is broken.
    pub run: fn(&[u8]),
    /// Well-formed inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that its format knows.
    pub words: &'static [&'static [u8]],
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "requests", run: protocol::requests, seeds: protocol::request_seeds, words: protocol::WORDS },
    Target { name: "replies", run: protocol::replies, seeds: protocol::reply_seeds, words: protocol::WORDS },
    Target {
        name: "handshake",
        run: protocol::handshake,
        seeds: protocol::handshake_seeds,
        words: protocol::SYNC_WORDS,
    },
    Target { name: "payload", run: protocol::payload, seeds: protocol::payload_seeds, words: protocol::SYNC_WORDS },
    Target { name: "numbers", run: protocol::numbers, seeds: protocol::number_seeds, words: protocol::NUMBER_WORDS },
    Target { name: "rdb_file", run: storage::rdb_file, seeds: storage::rdb_seeds, words: values::WORDS },
    Target { name: "rdb_check", run: storage::rdb_check, seeds: storage::rdb_seeds, words: values::WORDS },
    Target { name: "aof", run: storage::aof, seeds: storage::aof_seeds, words: protocol::WORDS },
    Target { name: "manifest", run: storage::manifest, seeds: storage::manifest_seeds, words: storage::MANIFEST_WORDS },
    Target { name: "dump_string", run: values::dump_string, seeds: values::string_seeds, words: values::WORDS },
    Target { name: "dump_list", run: values::dump_list, seeds: values::list_seeds, words: values::WORDS },
    Target { name: "dump_set", run: values::dump_set, seeds: values::set_seeds, words: values::WORDS },
    Target { name: "dump_zset", run: values::dump_zset, seeds: values::zset_seeds, words: values::WORDS },
    Target { name: "dump_hash", run: values::dump_hash, seeds: values::hash_seeds, words: values::WORDS },
    Target { name: "dump_stream", run: values::dump_stream, seeds: values::stream_seeds, words: values::WORDS },
    Target { name: "lzf", run: values::lzf, seeds: values::lzf_seeds, words: values::WORDS },
    Target { name: "listpack", run: values::listpack, seeds: values::listpack_seeds, words: values::WORDS },
    Target { name: "ziplist", run: values::ziplist, seeds: values::ziplist_seeds, words: values::WORDS },
    Target { name: "zipmap", run: values::zipmap, seeds: values::zipmap_seeds, words: values::WORDS },
    Target { name: "intset", run: values::intset, seeds: values::intset_seeds, words: values::WORDS },
    Target { name: "acl", run: settings::acl, seeds: settings::acl_seeds, words: settings::ACL_WORDS },
    Target { name: "glob", run: settings::glob, seeds: settings::glob_seeds, words: settings::GLOB_WORDS },
    Target { name: "config", run: settings::config, seeds: settings::config_seeds, words: settings::CONFIG_WORDS },
    Target { name: "cjson", run: scripts::cjson, seeds: scripts::cjson_seeds, words: scripts::WORDS },
    Target { name: "cmsgpack", run: scripts::cmsgpack, seeds: scripts::cmsgpack_seeds, words: scripts::WORDS },
    Target { name: "structs", run: scripts::structs, seeds: scripts::structs_seeds, words: scripts::WORDS },
];

/// Runs a target by its name: for the libFuzzer programs.
///
/// # Panics
/// When there is none of that name, or it finds something.
pub fn run(name: &str, bytes: &[u8]) {
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(bytes),
        None => panic!("there is no target {name}"),
    }
}
