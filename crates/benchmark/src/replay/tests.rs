#![allow(clippy::unwrap_used)]
use std::io::Write;

use super::*;

fn read(text: &[u8], connections: usize) -> Result<Log, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    Log::read(file.path(), connections)
}

fn commands(log: &Log, connection: usize) -> Vec<String> {
    let range = log.range(connection);
    (range.start..range.end)
        .map(|entry| {
            let at = usize::try_from(entry).unwrap();
            log.bytes(at..at + 1).escape_ascii().to_string().replace(r"\r\n", " ")
        })
        .collect()
}

const MONITORED: &[u8] = b"OK
1700000000.000100 [0 127.0.0.1:5000] \"set\" \"a\\x00\\\"b\" \"1\\n\"
1700000000.000200 [2 10.0.0.1:1] \"get\" \"k\"
1700000000.000250 [0 lua] \"incr\" \"x\"
1700000000.000300 [0 127.0.0.1:5000] \"auth\" \"(redacted)\"
+1700000001.000100 [2 10.0.0.1:1] \"get\" \"l\"
";

#[test]
fn a_monitor_log_is_dealt_out_by_client() {
    let log = read(MONITORED, 50).unwrap();
    assert_eq!((log.connections(), log.len(), log.skipped, log.has_times), (2, 4, 2, true));
    assert_eq!(commands(&log, 0), [r#"*3 $3 set $4 a\x00\"b $2 1\n "#]);
    assert_eq!(commands(&log, 1), ["*2 $6 SELECT $1 2 ", "*2 $3 get $1 k ", "*2 $3 get $1 l "]);
    assert_eq!(log.names(), ["SET", "SELECT", "GET"]);
    assert_eq!([log.due(0), log.due(2), log.due(3)], [0, 100_000, 1_000_000_000]);
    assert_eq!(log.operation(3), 2);
    assert_eq!(log.bytes(2..4), b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n*2\r\n$3\r\nget\r\n$1\r\nl\r\n");
    let together = read(MONITORED, 1).unwrap();
    let seen = commands(&together, 0);
    assert_eq!(seen[1], "*2 $6 SELECT $1 2 ");
    assert_eq!(seen.len(), 4);
}

#[test]
fn an_append_only_file_is_played_by_one() {
    let text = b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n#TS:1700000000\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n\
                 *3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\ncut o";
    let log = read(text, 50).unwrap();
    assert_eq!((log.connections(), log.len(), log.has_times), (1, 2, true));
    assert_eq!(commands(&log, 0), ["*2 $6 SELECT $1 3 ", "*2 $4 INCR $1 k "]);
}

#[test]
fn what_is_no_record_is_refused() {
    for (text, hint) in [
        (&b"hello\n"[..], "line 1 is none of MONITOR"),
        (b"REDIS0011", "incr.aof"),
        (b"*1\r\n:4\r\n", "is not the '$' expected"),
        (b"OK\n", "no command"),
        (b"1700000000.000100 [0 a] \"get\n", "line 1"),
        (b"1700000000.000100 [0 a]\n", "line 1"),
    ] {
        let error = read(text, 5).unwrap_err();
        assert!(error.contains(hint), "{error}");
    }
}
