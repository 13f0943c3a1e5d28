#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::testing::{Bench, differential, split};
use resp::{Args, Reply};

#[test]
fn sort_as_a_real_server() {
    differential(
        r#"
        !RPUSH l 3 1 2 10 -5 2.5
        SORT l
        SORT l DESC
        SORT l ALPHA
        SORT l ALPHA DESC
        SORT l LIMIT 1 2
        SORT l LIMIT 0 0
        SORT l LIMIT -5 2
        SORT l LIMIT 2 -1
        SORT l LIMIT 2 -7
        SORT l LIMIT 100 2
        SORT l LIMIT 5 100
        SORT l LIMIT x 1
        SORT l LIMIT 1 x
        SORT l LIMIT 1
        SORT l nonsense
        SORT l ASC DESC ASC
        SORT l BY nosort
        SORT l BY nosort DESC
        SORT l BY nosort LIMIT 1 3
        SORT l BY nosort DESC LIMIT 1 3
        SORT l BY nosort DESC LIMIT 4 30
        SORT l BY nosort LIMIT 10 3
        SORT l BY nosort LIMIT 0 0
        SORT missing
        SORT missing BY w_* GET o_*
        SORT missing STORE dest
        !SET str v
        SORT str
        SORT str nonsense
        !HSET h f v
        SORT h
        !RPUSH words banana apple cherry
        SORT words
        SORT words ALPHA
        SORT words ALPHA DESC LIMIT 0 2
        !RPUSH odd 1 "" " 2" 0x10 1e2 inf -inf
        SORT odd
        !RPUSH bad 1 "2 "
        SORT bad
        !RPUSH bad2 1 nan
        SORT bad2
        !RPUSH bad3 1 " "
        SORT bad3
        !MSET w_1 30 w_2 20 w_3 10 w_10 5 w_-5 50 w_2.5 25
        SORT l BY w_*
        SORT l BY w_* DESC
        SORT l BY w_* LIMIT 0 3
        SORT l BY w_* GET #
        SORT l BY w_* GET # GET w_*
        SORT l GET o_*
        SORT l GET nostar
        SORT l GET # GET #
        !DEL w_10
        SORT l BY w_* GET # GET w_*
        !MSET w_10 abc
        SORT l BY w_*
        SORT l BY w_* ALPHA
        SORT l BY w_* ALPHA DESC
        !HSET o_1 name one rank 3
        !HSET o_2 name two rank 2
        !HSET o_3 name three rank 1
        SORT l BY o_*->rank LIMIT 3 3
        SORT l BY o_*->rank GET o_*->name LIMIT 3 3
        SORT l GET o_*->missing
        SORT l GET o_*->
        SORT l GET o_*->name->x
        SORT l GET o_* GET w_*->name
        SORT l BY w_*->x
        !HSET oo_1_x name one
        SORT l GET oo_*_x->name
        !HSET * name star
        SORT l GET *->name
        SORT l STORE dest
        LRANGE dest 0 -1
        7.2 OBJECT ENCODING dest
        SORT l GET o_*->name STORE dest
        LRANGE dest 0 -1
        SORT l GET o_*->name GET # STORE dest
        LRANGE dest 0 -1
        SORT l LIMIT 100 1 STORE dest
        EXISTS dest
        SORT l LIMIT 100 1 STORE dest
        SORT l STORE l
        LRANGE l 0 -1
        SORT l STORE
        SORT_RO l
        SORT_RO l STORE x
        SORT_RO l DESC LIMIT 0 2
        SORT_RO l BY w_* ALPHA GET #
        !SADD s 5 3 9 1
        SORT s
        SORT s DESC
        SORT s BY nosort STORE dest
        LRANGE dest 0 -1
        !SADD s2 b a c
        SORT s2 ALPHA
        SORT s2
        SORT s2 BY nosort STORE dest
        LRANGE dest 0 -1
        SORT s2 BY nosort DESC LIMIT 0 2 STORE dest
        LRANGE dest 0 -1
        # The last, as Redis goes on complaining of any number after one out of range.
        !RPUSH bad4 1 1e999
        SORT bad4
        "#,
    );
}

#[test]
fn sorted_sets_as_a_real_server() {
    if crate::handler(crate::CommandId::Zadd).is_none() {
        return;
    }
    differential(
        "
        !ZADD z 3 1 2 2 1 3 7 0
        SORT z
        SORT z DESC
        SORT z BY nosort
        SORT z BY nosort DESC
        SORT z BY nosort LIMIT 1 2
        SORT z BY nosort DESC LIMIT 1 2
        SORT z BY nosort LIMIT 3 10
        SORT z BY nosort LIMIT 4 10
        SORT z BY nosort STORE dest
        LRANGE dest 0 -1
        ",
    );
}

#[test]
fn extra_keys_are_those_of_the_patterns() {
    let mut bench = Bench::new();
    bench.run("SET k v");
    let keys_of = |bench: &mut Bench, line: &str| {
        let args = split(line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let args = Args::from_slices(&args);
        let keys = bench.with_ctx(&mut Reply::new(), |ctx| super::extra_keys(ctx, args));
        assert_eq!(super::names_other_keys(args), line.contains('*'));
        keys.into_iter().map(|key| String::from_utf8(key).unwrap()).collect::<Vec<_>>()
    };
    bench.run("RPUSH l 1 2");
    assert_eq!(keys_of(&mut bench, "SORT l BY w_* GET # GET o_*_x->f"), ["w_1", "w_2", "o_1_x", "o_2_x"]);
    assert!(keys_of(&mut bench, "SORT l BY nosort GET #").is_empty());
    assert!(keys_of(&mut bench, "SORT k").is_empty());
}
