#![allow(clippy::unwrap_used)]
use super::*;

fn titles(options: &Options) -> Vec<String> {
    default_suite(options, &Payload::of(b"VXK")).into_iter().map(|test| test.title).collect()
}

fn chosen(tests: &str) -> Options {
    Options { tests: Some(format!(",{tests},")), ..Options::default() }
}

fn command(test: &Test) -> String {
    String::from_utf8(test.operations[0].forms[0].command.clone()).unwrap()
}

#[test]
fn the_value_stream_starts_with_vxk_and_goes_on() {
    let mut stream = ValueStream::new();
    assert_eq!(stream.take(3), b"VXK");
    let mut again = ValueStream::new();
    let all = again.take(10);
    assert_eq!(&all[3..], stream.take(7));
    assert!(all.iter().all(|byte| (b'0'..=b'o').contains(byte)));
}

#[test]
fn order_and_titles_are_those_of_7_2() {
    assert_eq!(
        titles(&Options::default()),
        [
            "PING_INLINE",
            "PING_MBULK",
            "SET",
            "GET",
            "INCR",
            "LPUSH",
            "RPUSH",
            "LPOP",
            "RPOP",
            "SADD",
            "HSET",
            "SPOP",
            "ZADD",
            "ZPOPMIN",
            "LPUSH (needed to benchmark LRANGE)",
            "LRANGE_100 (first 100 elements)",
            "LRANGE_300 (first 300 elements)",
            "LRANGE_500 (first 500 elements)",
            "LRANGE_600 (first 600 elements)",
            "MSET (10 keys)",
            "XADD",
        ]
    );
    assert_eq!(titles(&chosen("ping")), ["PING_INLINE", "PING_MBULK"]);
    assert_eq!(
        titles(&chosen("lrange_500")),
        ["LPUSH (needed to benchmark LRANGE)", "LRANGE_500 (first 500 elements)"]
    );
    assert!(titles(&chosen("nonsense")).is_empty());
    assert_eq!(titles(&chosen("mget")), ["MGET (10 keys)"]);
}

#[test]
fn commands_are_those_of_7_2() {
    let zadd = default_suite(&chosen("zadd"), &Payload::of(b"VXK"));
    assert_eq!(command(&zadd[0]), "*4\r\n$4\r\nZADD\r\n$6\r\nmyzset\r\n$1\r\n0\r\n$20\r\nelement:__rand_int__\r\n");
    let random = Options { keyspace: Some(5), ..chosen("zadd") };
    assert!(command(&default_suite(&random, &Payload::of(b"VXK"))[0]).contains("$12\r\n__rand_int__\r\n"));
    let cluster = Options { cluster: true, ..chosen("set") };
    assert!(command(&default_suite(&cluster, &Payload::of(b"VXK"))[0]).contains("key:{tag}:__rand_int__\r\n"));
    let mset = default_suite(&chosen("mset"), &Payload::of(b"VXK"));
    assert!(command(&mset[0]).starts_with("*21\r\n$4\r\nMSET\r\n"));
    let xadd = default_suite(&chosen("xadd"), &Payload::of(b"VXK"));
    assert!(command(&xadd[0]).contains("mystream\r\n$1\r\n*\r\n$7\r\nmyfield\r\n"));
}

#[test]
fn spread_gives_containers_many_keys() {
    let mut options = chosen("lpush");
    options.extended.spread = true;
    assert!(command(&default_suite(&options, &Payload::of(b"VXK"))[0]).contains("mylist:__rand_int__"));
}

#[test]
fn custom_commands() {
    let words: Vec<Vec<u8>> =
        ["set", "k", "__data__", ";", "3", "get", "k"].iter().map(|w| w.as_bytes().to_vec()).collect();
    let test = custom(&words, &Payload::of(b"VXK"), None).unwrap();
    assert_eq!(test.title, "set k __data__ ; 3 get k");
    assert_eq!(test.operations.len(), 2);
    assert_eq!(test.operations[1].weight, 3);
    assert_eq!(test.operations[0].forms[0].command, b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$3\r\nVXK\r\n");
    assert!(custom(&[b"a".to_vec(), b";".to_vec()], &Payload::default(), None).is_err());
    let single = custom(&[b"ping".to_vec()], &Payload::default(), None).unwrap();
    assert_eq!(single.payload_bytes, 14);
}

fn mixed(text: &str) -> Result<Test, String> {
    let mut options = Options::default();
    options.extended.mix = Some(text.to_owned());
    mix(&options, &[Payload::of(b"VXK")])
}

#[test]
fn mixes() {
    let test = mixed("set=1,get=9").unwrap();
    let weights: Vec<_> = test.operations.iter().map(|o| (o.name.as_str(), o.weight)).collect();
    assert_eq!(weights, [("SET", 1), ("GET", 9)]);
    assert!(mixed("nope=1").unwrap_err().contains("nope"));
    assert!(mixed("set=0").is_err());
}

#[test]
fn lives_and_sizes_make_forms() {
    let mut options = chosen("set,get");
    options.extended.ttls = vec![Ttl { ms: 5_000 }, Ttl { ms: 1_500 }];
    let payloads = payloads(&[3, 4, 5], 3, &options.extended.ttls, &mut ValueStream::new());
    let tests = tests(&options, &payloads, None).unwrap();
    let forms: Vec<String> =
        tests[0].operations[0].forms.iter().map(|form| form.command.escape_ascii().to_string()).collect();
    assert_eq!(forms.len(), 3);
    assert!(forms[0].ends_with(r"$3\r\nVXK\r\n$2\r\nEX\r\n$1\r\n5\r\n"), "{forms:?}");
    assert!(forms[1].ends_with(r"$2\r\nPX\r\n$4\r\n1500\r\n"), "{forms:?}");
    assert_eq!(tests[1].operations[0].forms.len(), 1, "a GET carries none of them");
    let words = ["expire", "k", "__ttl__"].map(|word| word.as_bytes().to_vec());
    let test = custom(&words, &payloads[1], None).unwrap();
    assert!(test.operations[0].forms[0].command.ends_with(b"$1\r\n2\r\n"));
}

#[test]
fn tests_of_functions_load_what_they_call() {
    let tests = default_suite(&chosen("function_load,fcall"), &Payload::of(b"VXK"));
    assert!(tests[0].setup.is_none() && command(&tests[0]).contains("$8\r\nFUNCTION\r\n$4\r\nLOAD"));
    assert!(command(&tests[1]).starts_with("*4\r\n$5\r\nFCALL\r\n$11\r\nbenchmark_0\r\n$1\r\n1\r\n"));
    assert!(tests[1].setup.as_ref().unwrap()[3].contains("'benchmark_9'"));
}

#[test]
fn rows_of_a_table_follow_each_other() {
    let rows = Dataset::parse("name,age\nAda,36\n", usize::MAX).unwrap();
    let words = ["hset", "u", "name", "__field:name__"].map(|word| word.as_bytes().to_vec());
    let test = custom(&words, &Payload::default(), Some(&rows)).unwrap();
    assert!(test.operations[0].forms[0].command.ends_with(b"$3\r\nAda\r\n"));
    assert_eq!(test.operation_names(), ["HSET"]);
}
