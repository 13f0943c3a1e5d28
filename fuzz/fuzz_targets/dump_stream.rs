//! libFuzzer on the target `dump_stream` of the crate `fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run("dump_stream", bytes));
