//! Scripts that run the random commands of the other families, with the keys that they name declared.

use super::vocabulary::{FAMILIES, Vocabulary};

/// Scripts that run no random command.
pub const PLAIN: &[&str] = &[
    "return 1",
    "return {KEYS, ARGV, #KEYS, #ARGV}",
    "return ARGV[1]",
    "return tonumber(ARGV[1])",
    "return {1, 2.9, 'a', nil, 4}",
    "return {ok = ARGV[1]}",
    "return {err = ARGV[1]}",
    "return redis.error_reply('MY text')",
    "return redis.status_reply(KEYS[1] or 'none')",
    "return nosuch",
    "error(ARGV[1])",
    "error({err = 'MY table'})",
    "return redis.call('nosuch')",
    "return redis.pcall('get')",
    "return redis.sha1hex(ARGV[1] or '')",
    "return cjson.encode({1, 2, {3, ARGV[1]}})",
    "return cjson.decode(ARGV[1])",
    "return cmsgpack.unpack(cmsgpack.pack({1, -1, 200, 70000, ARGV[1]}))",
    "return struct.pack('>I2h', 258, -2)",
    "return {bit.band(255, 15), bit.bor(1, 8), bit.tohex(255)}",
    "return true",
    "return false",
    "redis.setresp(3) return {double = 1.5}",
    "redis.setresp(3) return {map = {a = 1}}",
    "return redis.acl_check_cmd('set', 'a', 'b')",
    "this is no script",
    "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1] or 'lists0', 'x')",
    "#!lua flags=xyz\nreturn 1",
    "#!lua name=differ2\nredis.register_function('differ_two', function(keys, args) return args end)",
    "return string.rep('ab', 3) .. #ARGV",
    "return math.floor(3.7)",
    "local t = {} for i = 1, 5 do t[i] = i * i end return t",
    "return {redis.REDIS_VERSION_NUM and 1, redis.LOG_WARNING}",
    "return tostring(ARGV[1]):upper()",
];

/// A library whose functions run what their arguments say.
pub const LIBRARY: &str = "#!lua name=differ\n\
    redis.register_function('differ_call', function(keys, args) return redis.call(unpack(args)) end)\n\
    redis.register_function{function_name='differ_read', callback=function(keys, args) return redis.pcall(unpack(args)) end, flags={'no-writes'}}";

/// Scripts that run what their arguments say and return its reply.
const RUNNERS: &[&str] = &[
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return redis.error_reply(r.err) end return r",
    "#!lua\nreturn redis.call(unpack(ARGV))",
];

/// Runs two commands and returns the second one's reply; its first argument counts those of the first.
const TWO: &str = "local n = tonumber(ARGV[1]) local a, b = {}, {} for i = 2, #ARGV do if i <= n + 1 then a[#a + 1] = ARGV[i] else b[#b + 1] = ARGV[i] end end redis.pcall(unpack(a)) return redis.call(unpack(b))";

/// Digests of the first two of [`RUNNERS`] and of [`PLAIN`].
const DIGESTS: [&str; 4] = [
    "3c44b7a40779a5c68a6e3920550ff76660a813aa",
    "b72d50ecdcafd5e07f3fca2060a111de46c547f9",
    "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
    "799a09d526fb183f4fc9fbb8ac939f7e9078e81b",
];

/// A digest that may be known to the servers.
pub fn digest(vocabulary: &mut Vocabulary) -> String {
    match vocabulary.below(8) {
        0 => String::from("ffffffffffffffffffffffffffffffffffffffff"),
        1 => String::from("abc"),
        2 => DIGESTS[vocabulary.below(DIGESTS.len())].to_ascii_uppercase(),
        _ => String::from(DIGESTS[vocabulary.below(DIGESTS.len())]),
    }
}

/// A call of a script or function that runs one of these commands, or the first and then the second.
pub fn wrap(vocabulary: &mut Vocabulary, first: Vec<Vec<u8>>, second: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = first.iter().skip(1).filter(|arg| is_key(arg)).cloned().collect();
    let mut argv = first;
    let head: [&[u8]; 2] = match vocabulary.below(20) {
        0..4 => [b"EVALSHA", DIGESTS[vocabulary.below(2)].as_bytes()],
        4..7 => [b"FCALL", b"differ_call"],
        7 => [b"FCALL_RO", b"differ_read"],
        8 => [b"EVAL_RO", RUNNERS[0].as_bytes()],
        9..12 => {
            keys.extend(second.iter().skip(1).filter(|arg| is_key(arg)).cloned());
            argv.insert(0, argv.len().to_string().into_bytes());
            argv.extend(second);
            [b"EVAL", TWO.as_bytes()]
        }
        _ => [b"EVAL", RUNNERS[vocabulary.below(RUNNERS.len())].as_bytes()],
    };
    // Now and then a script does not say which keys it uses.
    if vocabulary.chance(5) {
        keys.clear();
    }
    let mut args: Vec<Vec<u8>> = head.iter().map(|word| word.to_vec()).collect();
    args.push(keys.len().to_string().into_bytes());
    args.extend(keys);
    args.extend(argv);
    args
}

/// The command whose reply a script of [`wrap`] returns.
pub fn inner(args: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    let (head, script) = (args.first()?.to_ascii_uppercase(), args.get(1)?.as_slice());
    let runs = match head.as_slice() {
        b"EVAL" | b"EVAL_RO" => RUNNERS.iter().any(|text| text.as_bytes() == script) || script == TWO.as_bytes(),
        b"EVALSHA" | b"EVALSHA_RO" => DIGESTS[..2].iter().any(|digest| digest.as_bytes() == script),
        b"FCALL" | b"FCALL_RO" => script.starts_with(b"differ_"),
        _ => false,
    };
    let number = |index: usize| std::str::from_utf8(args.get(index)?).ok()?.parse::<usize>().ok();
    let argv = args.get(number(2).filter(|_| runs)?.checked_add(3)?..)?;
    let argv = if script == TWO.as_bytes() {
        let words = std::str::from_utf8(argv.first()?).ok()?.parse::<usize>().ok()?;
        argv.get(words.checked_add(1)?..)?
    } else {
        argv
    };
    Some(argv).filter(|argv| !argv.is_empty())
}

/// Whether an argument is one of the keys that the vocabulary makes.
fn is_key(arg: &[u8]) -> bool {
    let has_prefix = |prefix: &str| {
        arg.strip_prefix(prefix.as_bytes()).is_some_and(|rest| rest.len() == 1 && rest[0].is_ascii_digit())
    };
    FAMILIES.iter().any(|family| has_prefix(family)) || has_prefix("w_") || has_prefix("lex") || arg == b"{tag}a"
}
