#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use crate::ctx::{Block, TimeoutReply};
use crate::testing::{Bench, check_all, differential, differential_with};

mod payloads;
mod random;

#[test]
fn ids_that_clients_write() {
    differential(
        r#"
        XADD s 1 a 1
        XADD s 1-1 a 1
        XADD s 1-1 a 1
        XADD s 0-0 a 1
        XADD n 0-0 a 1
        XADD s 0 a 1
        XADD s - a 1
        XADD s + a 1
        XADD s "" a 1
        XADD s 1-2-3 a 1
        XADD s 1- a 1
        XADD s -1 a 1
        XADD s 007 a 1
        XADD s " 8" a 1
        XADD s "+9" a 1
        XADD s "9-+10" a 1
        XADD s "9- 11" a 1
        XADD s "10 " a 1
        XADD s 10-* a 1
        XADD s 10-* a 1
        XADD s 9-* a 1
        XADD s *-1 a 1
        XADD s 10-** a 1
        XADD s 18446744073709551616 a 1
        XADD s "11\x00junk" a 1
        XADD s 12-18446744073709551615 a 1
        7.2 XADD s 12-* a 1
        XADD s 18446744073709551615-18446744073709551614 a 1
        XADD s * a 1
        XADD s * a 1
        XADD s 18446744073709551615-18446744073709551615 a 1
        XADD s 5 a
        XADD s 5
        XADD s * a
        XADD s * a 1 b
        XADD s
        XADD z 0-* a 1
        XADD z 0-* a 1
        XRANGE z - +
        XRANGE s - + COUNT 3
        XRANGE s 7 9
        XRANGE s (7 9
        XRANGE s 7 (9-10
        XRANGE s (18446744073709551615-18446744073709551615 +
        XRANGE s - (0-0
        XRANGE s (- +
        XRANGE s ( +
        XRANGE s - (+
        XRANGE s x +
        XRANGE s - + COUNT
        XRANGE s - + COUNT x
        XRANGE s - + COUNT 0
        XRANGE s - + COUNT -5
        XRANGE s - + COUNT 1 COUNT 2
        XRANGE s - + BOUNT 1
        XRANGE missing - +
        XRANGE missing - + COUNT 0
        XREVRANGE s + - COUNT 3
        XREVRANGE s 9 7
        XREVRANGE s (9-10 (7
        XREVRANGE s - +
        XLEN s
        XLEN missing
        TYPE s
        OBJECT ENCODING s
        SET str x
        XADD str * a 1
        XADD str NOMKSTREAM * a 1
        XLEN str
        XRANGE str - +
        XREVRANGE str + -
        XDEL str 1
        XTRIM str MAXLEN 1
        XSETID str 1
        XREAD STREAMS str 0
        XREADGROUP GROUP g c STREAMS str >
        XACK str g 1
        XPENDING str g
        XCLAIM str g c 0 1
        XAUTOCLAIM str g c 0 0
        XINFO STREAM str
        XINFO GROUPS str
        XINFO CONSUMERS str g
        XGROUP CREATE str g $ MKSTREAM
        XGROUP CREATE str g $
        XGROUP DESTROY str g
        "#,
    );
}

#[test]
fn adding_trims() {
    let mut lines = String::from("DEL s\n");
    for i in 1..=350 {
        lines.push_str(&format!("XADD s {i} f{} v{i} g x{i}\n", i % 3));
    }
    lines.push_str(
        r"
        XLEN s
        XTRIM s MAXLEN ~ 340
        XTRIM s MAXLEN ~ 200
        XTRIM s MAXLEN ~ 0 LIMIT 99
        XTRIM s MAXLEN ~ 0 LIMIT 100
        XTRIM s MAXLEN = 120
        XTRIM s MAXLEN 119
        XTRIM s MINID ~ 240
        XTRIM s MINID 240
        XTRIM s MINID = 240-1
        XINFO STREAM s
        XDEL s 350 250 250 9999
        XDEL s 241
        XINFO STREAM s
        XREVRANGE s + - COUNT 2
        XADD s MAXLEN 10 400 a 1
        XADD s MAXLEN ~ 5 401 a 1
        XADD s MINID 398 402 a 1
        XADD s MINID ~ 398 403 a 1
        XADD s MINID = 402 LIMIT 10 404 a 1
        XADD s MAXLEN ~ 1 LIMIT 0 405 a 1
        XADD s MAXLEN 0 406 a 1
        XLEN s
        XINFO STREAM s
        XADD s LIMIT 5 407 a 1
        XADD s LIMIT 0 407 a 1
        XADD s MAXLEN 5 MINID 3 407 a 1
        XADD s MAXLEN 5 MAXLEN 3 407 a 1
        XADD s MAXLEN -1 407 a 1
        XADD s MAXLEN x 407 a 1
        XADD s MAXLEN ~ x 407 a 1
        XADD s MAXLEN ~ -3 407 a 1
        XADD s MAXLEN ~ 3 LIMIT -1 407 a 1
        XADD s MINID ~ 3-* LIMIT 1 407 a 1
        XADD s MINID - 407 a 1
        XADD s MAXLEN
        XADD s NOMKSTREAM 408 a 1
        XADD missing NOMKSTREAM 408 a 1
        XADD missing NOMKSTREAM NOMKSTREAM MAXLEN 3 * a 1
        XTRIM s
        XTRIM s MAXLEN
        XTRIM s LIMIT 3
        XTRIM s NOMKSTREAM
        XTRIM s MAXLEN 3 x
        XTRIM s MAXLEN 3 LIMIT 2
        XTRIM missing MAXLEN 3
        XTRIM missing MAXLEN ~ 3 LIMIT 2
        XDEL missing 1
        XDEL s x
        XDEL s 408 x
        XDEL s 408
        XDEL s
        XLEN s
        EXISTS s
        XTRIM s MAXLEN 0
        EXISTS s
        XINFO STREAM s
        ",
    );
    differential(&lines);
}

#[test]
fn small_blocks() {
    let mut lines = String::new();
    let mut bench = Bench::new();
    bench.settings.stream.node_max_entries = 3;
    let ids = [
        "1-1",
        "1-5",
        "1-255",
        "2-0",
        "2-1",
        "300-0",
        "301-0",
        "66000-1",
        "66000-2",
        "66000-3",
        "66001-0",
        "1700000000000-0",
        "1700000000001-0",
        "1700000000002-7",
    ];
    for id in ids {
        lines.push_str(&format!("XADD s {id} field {id}\nXINFO STREAM s\n"));
    }
    for id in ["1-5", "66000-2", "2-0", "2-1", "300-0", "1700000000002-7", "66001-0"] {
        lines.push_str(&format!("XDEL s {id}\nXINFO STREAM s\nXRANGE s {id} + COUNT 2\nXREVRANGE s {id} - COUNT 2\n"));
    }
    lines.push_str("XTRIM s MAXLEN ~ 2\nXINFO STREAM s\nXTRIM s MINID 66000-3\nXINFO STREAM s FULL COUNT 0\nXSETID s 9999999999999\nXADD s * a b\nXADD s * a b\nXINFO STREAM s\n");
    differential_with(&mut bench, &["--stream-node-max-entries", "3"], &lines);
}

#[test]
fn set_id() {
    differential(
        r"
        XADD s 5 a 1
        XADD s 7 a 1
        XSETID s 6
        XSETID s 7
        XSETID s 10-3
        XSETID s 10 ENTRIESADDED 1
        XSETID s 10 ENTRIESADDED -1
        XSETID s 10 ENTRIESADDED x
        XSETID s 10 ENTRIESADDED 2
        XSETID s 10 ENTRIESADDED 100 MAXDELETEDID 11
        XSETID s 10 ENTRIESADDED 100 MAXDELETEDID 9
        7.2 XSETID s 8
        XSETID s 9 MAXDELETEDID 3
        XSETID s 10 MAXDELETEDID
        XSETID s 10 FOO 1
        XSETID s x
        XSETID s +
        XSETID missing 1
        XINFO STREAM s
        XADD s 20 a 1
        XDEL s 20
        XSETID s 20 MAXDELETEDID 8
        XSETID s 9
        XADD s 10 b 1
        XRANGE s - +
        XREVRANGE s + -
        XADD s 20 b 1
        XRANGE s - +
        XLEN s
        XSETID s 18446744073709551615-18446744073709551615
        XADD s * a 1
        XADD s 3-* a 1
        XADD s 3 a 1
        ",
    );
}

#[test]
fn reading() {
    differential(
        r"
        XADD a 1 f v
        XADD a 2 f v g w
        XADD b 1 x y
        XREAD STREAMS a 0
        XREAD STREAMS a 0-0
        XREAD STREAMS a 1
        XREAD STREAMS a 2
        XREAD STREAMS a $
        XREAD COUNT 1 STREAMS a b 0 0
        XREAD COUNT -1 STREAMS a b 0 0
        XREAD COUNT 0 STREAMS b a 0 1
        XREAD STREAMS a b c 2 0 0
        XREAD STREAMS c d 0 0
        XREAD BLOCK 0 COUNT 5 STREAMS a 1
        XREAD BLOCK -1 STREAMS a 1
        XREAD BLOCK x STREAMS a 1
        7.2 XREAD BLOCK 9223372036854775807 STREAMS a 1
        XREAD BLOCK 1.5 STREAMS a 1
        XREAD COUNT x STREAMS a 1
        7.2 XREAD STREAMS a b 1
        XREAD STREAMS
        XREAD COUNT 1
        XREAD COUNT 1 BLOCK 1
        XREAD NOACK STREAMS a 0
        XREAD GROUP g c STREAMS a 0
        XREAD STREAMS a >
        XREAD STREAMS a -
        XREAD STREAMS a x
        XREAD FOO STREAMS a 0
        XREAD STREAMS a 18446744073709551615-18446744073709551615
        XREADGROUP STREAMS a >
        XREADGROUP GROUP g c STREAMS a >
        XREADGROUP GROUP g c STREAMS missing >
        7.2 XREADGROUP GROUP g c STREAMS a b >
        XREADGROUP GROUP g STREAMS a >
        HELLO 3
        XREAD STREAMS a b 0 0
        XREAD STREAMS c 0
        XRANGE a - + COUNT 0
        XRANGE a - +
        ",
    );
}

#[test]
fn groups() {
    differential(
        r"
        XGROUP CREATE s g $
        XGROUP CREATE s g x MKSTREAM
        XGROUP CREATE s g $ MKSTREAM
        XGROUP CREATE s g 0 MKSTREAM
        XGROUP CREATE s h 0 ENTRIESREAD 3
        XGROUP CREATE s i 0 ENTRIESREAD -1
        XGROUP CREATE s j 0 ENTRIESREAD -2
        XGROUP CREATE s j 0 ENTRIESREAD
        XGROUP CREATE s j 0 ENTRIESREAD x
        XGROUP CREATE s j 0 FOO
        XGROUP CREATE s j - 
        XGROUP CREATE s j 0 MKSTREAM MKSTREAM MKSTREAM MKSTREAM
        XGROUP CREATE s j 0 MKSTREAM ENTRIESREAD 3
        XGROUP CREATE s
        XGROUP FOO s g
        XGROUP SETID s g 5
        XGROUP SETID s g - ENTRIESREAD 4
        XGROUP SETID s g + MKSTREAM
        XGROUP SETID s nope $
        XGROUP SETID missing g $
        XGROUP SETID s g $
        XGROUP DESTROY s nope
        XGROUP DESTROY missing g
        XGROUP DESTROY s j
        XGROUP DESTROY s h
        XGROUP DESTROY s i
        XGROUP CREATECONSUMER s g alice
        XGROUP CREATECONSUMER s g alice
        XGROUP CREATECONSUMER s nope alice
        XGROUP DELCONSUMER s g bob
        XGROUP DELCONSUMER s nope bob
        XINFO GROUPS s
        XINFO STREAM s
        XADD s 1 a 1
        XADD s 2 a 2
        XADD s 3 a 3
        XADD s 4 b 4
        XINFO GROUPS s
        XREADGROUP GROUP g alice COUNT 1 STREAMS s >
        XINFO GROUPS s
        XREADGROUP GROUP g bob COUNT 2 STREAMS s >
        XREADGROUP GROUP g bob STREAMS s 0
        XREADGROUP GROUP g bob STREAMS s 2
        XREADGROUP GROUP g alice NOACK STREAMS s >
        XREADGROUP GROUP g alice STREAMS s >
        XREADGROUP GROUP g carol STREAMS s 0
        XREADGROUP GROUP g carol NOACK STREAMS s >
        XREADGROUP GROUP g carol STREAMS s $
        XREADGROUP GROUP g carol STREAMS s 18446744073709551615-18446744073709551615
        XREADGROUP GROUP g bob COUNT 1 STREAMS s s > 0
        XINFO GROUPS s
        XPENDING s g
        XPENDING s nope
        XPENDING missing g
        XPENDING s g - + 10 nobody
        XPENDING s g - +
        XPENDING s g IDLE 100000 - + 10
        XPENDING s g IDLE x - + 10
        XPENDING s g IDLE 0 - + 
        XPENDING s g - + x
        XPENDING s g - + -1
        XPENDING s g (18446744073709551615-18446744073709551615 + 1
        XPENDING s g - (0 1
        XPENDING s g IDLE 1 - + 10 a b
        XACK s g 1 2
        XACK s g 1 2 9
        XACK s g 1 x
        XACK s nope 1
        XACK missing g 1
        XPENDING s g
        XDEL s 3
        XREADGROUP GROUP g bob STREAMS s 0
        XINFO GROUPS s
        XADD s 5 a 5
        XADD s 6 a 6
        XINFO GROUPS s
        XREADGROUP GROUP g alice COUNT 1 STREAMS s >
        XINFO GROUPS s
        XGROUP SETID s g 1
        XINFO GROUPS s
        XREADGROUP GROUP g carol STREAMS s >
        XINFO GROUPS s
        XGROUP DELCONSUMER s g carol
        XGROUP DELCONSUMER s g bob
        XPENDING s g
        XINFO CONSUMERS s nope
        XINFO CONSUMERS missing g
        XINFO GROUPS missing
        XINFO STREAM missing
        XINFO STREAM s FOO
        XINFO STREAM s FULL COUNT
        XINFO STREAM s FULL FOO 1
        XINFO STREAM s FULL COUNT x
        XINFO FOO s
        XINFO GROUPS s x
        XINFO STREAM
        HELLO 3
        XREADGROUP GROUP g alice STREAMS s 0
        7.2 XREADGROUP GROUP g dora STREAMS s >
        XINFO GROUPS s
        XPENDING s g
        XGROUP CREATE empty g 0 MKSTREAM
        XINFO STREAM empty
        XINFO STREAM empty FULL
        XPENDING empty g
        XGROUP SETID s g 2 ENTRIESREAD 7
        XINFO GROUPS s
        DEL s
        EXISTS s
        ",
    );
}

#[test]
fn lags() {
    let mut lines = String::from("XGROUP CREATE s g 0 MKSTREAM\nXGROUP CREATE s h $\nXINFO GROUPS s\n");
    for i in 1..=6 {
        lines.push_str(&format!("XADD s {i} a {i}\nXINFO GROUPS s\n"));
    }
    for (index, command) in [
        "XDEL s 3",
        "XTRIM s MAXLEN 4",
        "XDEL s 6",
        "XADD s 9 a 9",
        "XGROUP SETID s h 4",
        "XTRIM s MINID 5",
        "XADD s 10 a b",
        "XDEL s 9 10",
        "XGROUP SETID s g 0",
        "XTRIM s MAXLEN 0",
        "XSETID s 20 ENTRIESADDED 50 MAXDELETEDID 1",
        "XADD s 21 a b",
        "XGROUP SETID s g 5 ENTRIESREAD 2",
    ]
    .into_iter()
    .enumerate()
    {
        lines.push_str(&format!(
            "{command}\nXINFO GROUPS s\nXREADGROUP GROUP g c COUNT 1 STREAMS s >\nXINFO GROUPS s\n"
        ));
        if index % 3 == 0 {
            lines.push_str("XREADGROUP GROUP h c COUNT 1 NOACK STREAMS s >\nXINFO GROUPS s\n");
        }
        lines.push_str(
            "XGROUP CREATE s n $\nXGROUP CREATE s m 0\nXINFO GROUPS s\nXGROUP DESTROY s n\nXGROUP DESTROY s m\n",
        );
    }
    differential(&lines);
}

#[test]
fn claims() {
    differential(
        r"
        XGROUP CREATE s g 0 MKSTREAM
        XADD s 1 a 1
        XADD s 2 a 2
        XADD s 3 a 3
        XADD s 4 a 4
        XADD s 5 a 5
        XCLAIM missing g c 0 1
        XCLAIM s nope c 0 1
        XCLAIM s g c x 1
        XCLAIM s g c 0 1
        XCLAIM s g c 0 1 FORCE
        XCLAIM s g c 0 1 FORCE JUSTID
        XCLAIM s g d -5 1 99 FORCE
        XCLAIM s g d 100000000 1
        XCLAIM s g d 0 1 2 3 x
        XCLAIM s g d 0 1 IDLE
        XCLAIM s g d 0 1 IDLE x
        XCLAIM s g d 0 1 TIME x
        XCLAIM s g d 0 1 RETRYCOUNT x
        XCLAIM s g d 0 1 LASTID x
        XCLAIM s g d 0 1 FORCE FOO
        XREADGROUP GROUP g a COUNT 3 STREAMS s >
        XCLAIM s g b 0 2 3 TIME 1000 RETRYCOUNT 7
        XCLAIM s g b 0 2 IDLE 5000 RETRYCOUNT -3
        XCLAIM s g b 5000000 2
        XCLAIM s g b 0 2 LASTID 4
        XCLAIM s g b 0 9 LASTID 4-1
        XINFO GROUPS s
        XDEL s 3
        XCLAIM s g b 0 3
        XCLAIM s g b 0 3
        XPENDING s g
        XAUTOCLAIM missing g c 0 0
        XAUTOCLAIM s nope c 0 0
        XAUTOCLAIM s g c x 0
        XAUTOCLAIM s g c 0 x
        XAUTOCLAIM s g c 0 (18446744073709551615-18446744073709551615
        XAUTOCLAIM s g c 0 0 COUNT
        XAUTOCLAIM s g c 0 0 COUNT 0
        XAUTOCLAIM s g c 0 0 COUNT x
        XAUTOCLAIM s g c 0 0 FOO
        XAUTOCLAIM s g c 1000000 0
        XAUTOCLAIM s g c 0 0 COUNT 1
        XAUTOCLAIM s g c 0 (1 COUNT 1 JUSTID
        XAUTOCLAIM s g c 0 - JUSTID
        XREADGROUP GROUP g a STREAMS s >
        XDEL s 2 5
        XAUTOCLAIM s g e 0 0 COUNT 2
        XAUTOCLAIM s g e 0 0
        XAUTOCLAIM s g e 0 9
        XPENDING s g
        XPENDING s g IDLE 1000000 - + 10
        XINFO GROUPS s
        HELLO 3
        XCLAIM s g a 0 1
        XAUTOCLAIM s g e 0 0
        ",
    );
}

#[test]
fn old_pending_entries_are_claimed_by_their_idle_time() {
    let mut bench = Bench::new();
    bench.check_all("XGROUP CREATE s g 0 MKSTREAM => +OK\nXADD s 1 a 1 => $3 1-0\nXADD s 2 a 2 => $3 2-0");
    bench.run("XREADGROUP GROUP g a STREAMS s >");
    bench.advance(500);
    bench.check("XPENDING s g - + 10", "*2 *4 $3 1-0 $1 a :500 :1 *4 $3 2-0 $1 a :500 :1");
    bench.check("XCLAIM s g b 501 1 2 JUSTID", "*0");
    bench.check("XCLAIM s g b 500 1 JUSTID", "*1 $3 1-0");
    bench.check("XAUTOCLAIM s g c 400 0 COUNT 5", "*3 $3 0-0 *1 *2 $3 2-0 *2 $1 a $1 2 *0");
    bench.check("XPENDING s g - + 10", "*2 *4 $3 1-0 $1 b :0 :1 *4 $3 2-0 $1 c :0 :2");
    bench.check("XPENDING s g IDLE 1 - + 10", "*0");
    bench.check("XPENDING s g - + 10 b", "*1 *4 $3 1-0 $1 b :0 :1");
    bench.advance(10);
    bench.check(
        "XINFO CONSUMERS s g",
        "*3 *8 $4 name $1 a $7 pending :0 $4 idle :510 $8 inactive :510 *8 $4 name $1 b $7 pending :1 $4 idle :10 $8 inactive :10 \
         *8 $4 name $1 c $7 pending :1 $4 idle :10 $8 inactive :10",
    );
    bench.check(
        "XINFO STREAM s FULL COUNT 1",
        "*18 $6 length :2 $15 radix-tree-keys :1 $16 radix-tree-nodes :2 $17 last-generated-id $3 2-0 $20 max-deleted-entry-id $3 0-0 \
         $13 entries-added :2 $23 recorded-first-entry-id $3 1-0 $7 entries *1 *2 $3 1-0 *2 $1 a $1 1 $6 groups *1 *14 $4 name $1 g \
         $17 last-delivered-id $3 2-0 $12 entries-read :2 $3 lag :0 $9 pel-count :2 $7 pending *1 *4 $3 1-0 $1 b :1700000000500 :1 \
         $9 consumers *3 *10 $4 name $1 a $9 seen-time :1700000000000 $11 active-time :1700000000000 $9 pel-count :0 $7 pending *0 \
         *10 $4 name $1 b $9 seen-time :1700000000500 $11 active-time :1700000000500 $9 pel-count :1 $7 pending *1 *3 $3 1-0 \
         :1700000000500 :1 *10 $4 name $1 c $9 seen-time :1700000000500 $11 active-time :1700000000500 $9 pel-count :1 $7 pending *1 \
         *3 $3 2-0 :1700000000500 :2",
    );
}

#[test]
fn waiting() {
    let mut bench = Bench::new();
    bench.may_block = true;
    bench.check("XREAD BLOCK 1000 STREAMS a b $ 5", "(blocked)");
    let deadline_ms = Some(bench.now_ms + 1000);
    let replaced = vec![(6, b"0-0".to_vec())];
    assert_eq!(bench.block, Some(Block { keys: 4..6, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced }));
    bench.check("XADD a 7 f v", "$3 7-0");
    bench.check("XREAD BLOCK 0 STREAMS a b $ 5", "(blocked)");
    let replaced = vec![(6, b"7-0".to_vec())];
    assert_eq!(
        bench.block,
        Some(Block { keys: 4..6, deadline_ms: None, timeout_reply: TimeoutReply::NullArray, replaced })
    );
    bench.check("XREAD BLOCK 0 STREAMS a 6", "*1 *2 $1 a *1 *2 $3 7-0 *2 $1 f $1 v");
    bench.check("XGROUP CREATE a g $", "+OK");
    bench.check("XREADGROUP GROUP g c BLOCK 0 STREAMS a >", "(blocked)");
    bench.check("XREADGROUP GROUP g c BLOCK 0 STREAMS a 0", "*1 *2 $1 a *0");
    bench.check("XREAD STREAMS a 7", "*-1");
    bench.may_block = false;
    bench.check("XREADGROUP GROUP g c BLOCK 0 STREAMS a >", "*-1");
}

#[test]
fn copies_and_payloads_keep_everything() {
    let mut bench = Bench::new();
    for i in 1..=250 {
        bench.run(&format!("XADD s {i} f{} {i} g h", i % 2));
    }
    bench.check_all(
        r"
        XGROUP CREATE s g 0 => +OK
        XGROUP CREATE s h 7 => +OK
        XDEL s 5 6 100 => :3
        ",
    );
    bench.run("XREADGROUP GROUP g alice COUNT 20 STREAMS s >");
    bench.advance(5);
    bench.run("XREADGROUP GROUP g bob COUNT 20 STREAMS s >");
    bench.run("XGROUP CREATECONSUMER s g carol");
    bench.run("XACK s g 2 4 30");
    let full = bench.run("XINFO STREAM s FULL COUNT 0");
    bench.check("COPY s t", ":1");
    assert_eq!(bench.run("XINFO STREAM t FULL COUNT 0"), full);
    let reply = bench.run_args(&[b"DUMP", b"s"]);
    let at = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let payload = &reply[at..reply.len() - 2];
    assert_eq!(bench.run_args(&[b"RESTORE", b"u", b"0", payload]), b"+OK\r\n");
    assert_eq!(bench.run("XINFO STREAM u FULL COUNT 0"), full);
    bench.check_all(
        r"
        XGROUP DESTROY v g => -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        OBJECT ENCODING u => $6 stream
        ",
    );
    bench.check("RENAME u v", "+OK");
    assert_eq!(bench.run("XINFO STREAM v FULL COUNT 0"), full);
    bench.check("XLEN v", ":247");
}

#[test]
fn help_is_there() {
    let mut bench = Bench::new();
    assert!(bench.run("XGROUP HELP").contains("CREATECONSUMER"));
    assert!(bench.run("XINFO HELP").contains("CONSUMERS"));
    check_all("XLEN s => :0");
}
