//! The libraries and the conversions.

use super::{check, check_error, host, run_in, vm};
use resp::Proto;

#[test]
fn replies_become_values() {
    check("return redis.call('echo', 12)", "$2|12|");
    check("return redis.call('echo', 1e20)", "$5|1e+20|");
    check("return redis.call('echo', 0.1)", "$3|0.1|");
    check("return redis.call('int') + 1", ":8|");
    check("return redis.call('status').ok", "$4|PONG|");
    check("return redis.call('nil') == false", ":1|");
    check("local l = redis.call('list') return {#l, l[1], l[2], tostring(l[3])}", "*4|:3|$1|a|:1|$5|false|");
    check("redis.setresp(3) return redis.call('nil') == nil", "#t|".replace("#t", ":1").as_str());
    check("redis.setresp(3) return redis.call('map').map.k.double", ":1|");
    check("redis.setresp(3) return tostring(redis.call('set').set.m)", "$4|true|");
    check("redis.setresp(3) return redis.call('verbatim').verbatim_string.string", "$4|text|");
    check("redis.setresp(3) return redis.call('big').big_number", "$30|123456789012345678901234567890|");
    check("redis.setresp(3) return type(redis.call('bool'))", "$7|boolean|");
}

#[test]
fn values_become_replies() {
    check("return {1, 2, nil, 4}", "*2|:1|:2|");
    check("return {double = 3.5}", "$3|3.5|");
    check("return 3.99", ":3|");
    check("return {map = {a = 1}}", "*2|$1|a|:1|");
    check("return {ok = 'fine'}", "+fine|");
    check("return redis.error_reply('My Err')", "-My Err|");
    check("return redis.error_reply('x')", "-ERR x|");
    check("return redis.status_reply('a')", "+a|");
    check("return {err = 'a\\r\\nb'}", "-a  b|");
    check("return cjson.null", "$-1|");
    let resp3 = |body: &str| run_in(&mut vm(), &mut host(), body, &[], 0, Proto::Resp3);
    assert_eq!(resp3("return {map = {a = 1}}"), "%1|$1|a|:1|");
    assert_eq!(resp3("return {set = {a = true}}"), "~1|$1|a|");
    assert_eq!(resp3("return {double = 3.5}"), ",3.5|");
    assert_eq!(resp3("return true"), ":1|");
    assert_eq!(resp3("redis.setresp(3) return true"), "#t|");
    assert_eq!(resp3("return {big_number = '12'}"), "(12|");
    assert_eq!(resp3("return {verbatim_string = {string = 'x', format = 'txt'}}"), "=5|txt:x|");
    assert_eq!(resp3("return false"), "_|");
}

#[test]
fn keys_and_arguments() {
    let args: [&[u8]; 3] = [b"k1", b"k2", b"a1"];
    let reply = run_in(&mut vm(), &mut host(), "return {#KEYS, KEYS[2], #ARGV, ARGV[1]}", &args, 2, Proto::Resp2);
    assert_eq!(reply, "*4|:2|$2|k2|:1|$2|a1|");
}

#[test]
fn json() {
    check("return cjson.encode({1, 2, {a = 1.5}})", "$15|[1,2,{\"a\":1.5}]|");
    check("return cjson.encode({})", "$2|{}|");
    check("return cjson.encode('a/\\n\\1')", "$13|\"a\\/\\n\\u0001\"|");
    check("return cjson.encode(1/3)", "$16|0.33333333333333|");
    check("return cjson.decode('[1,{\"a\":[true,null]}]')[2].a[2] == cjson.null", ":1|");
    check("return cjson.decode('\"\\\\u00e9\\\\ud83d\\\\ude00\"')", "$6|é😀|");
    check_error("return cjson.decode('{')", "user_script:1: Expected object key string but found T_END at character 2");
    check_error("return cjson.decode('[1,')", "user_script:1: Expected value but found T_END at character 4");
    check_error("return cjson.decode('nul')", "user_script:1: Expected value but found invalid token at character 1");
    check_error("return cjson.encode({[1000] = 1})", "user_script:1: Cannot serialise table: excessively sparse array");
    check_error(
        "return cjson.encode(print and 1 or function() end)",
        "user_script:1: Script attempted to access nonexistent global variable 'print'",
    );
    check_error("return cjson.encode(0/0)", "user_script:1: Cannot serialise number: must not be NaN or Inf");
    check_error("return cjson.encode()", "user_script:1: bad argument #1 to 'encode' (expected 1 argument)");
}

#[test]
fn msgpack() {
    check("return cmsgpack.pack({1, 2, 3})", "$4|\u{fffd}\u{1}\u{2}\u{3}|");
    check("return cmsgpack.unpack(cmsgpack.pack({a = {1, -1, 1.5, 'x', 300, -70000}})).a[6]", ":-70000|");
    check("return {cmsgpack.unpack(cmsgpack.pack(1, 2, 3))}", "*3|:1|:2|:3|");
    check("return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3))}", "*2|:1|:1|");
    check("return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, 1)}", "*3|:-1|:2|:3|");
    check_error("return cmsgpack.unpack('\\220')", "user_script:1: Missing bytes in input.");
    check_error("return cmsgpack.unpack('\\193')", "user_script:1: Bad data format in input.");
    check_error("return cmsgpack.pack()", "user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.)");
}

#[test]
fn structs_and_bits() {
    check("return {struct.unpack('>i4', struct.pack('>i4', -5))}", "*2|:-5|:5|");
    check(
        "return {struct.unpack('<HbsBc0', struct.pack('<HbsBc0', 513, -1, 'hi', 3, 'abc'))}",
        "*6|:513|:-1|$2|hi|$3|abc|:11|".replace("*6|", "*5|").as_str(),
    );
    check("return struct.size('>!8id')", ":16|");
    check_error("return struct.pack('q')", "user_script:1: bad argument #1 to 'pack' (invalid format option 'q')");
    check_error("return struct.unpack('i', 'a')", "user_script:1: bad argument #2 to 'unpack' (data string too short)");
    check_error("return struct.pack('>I2147483648', 1)", "user_script:1: integral size overflow");
    check(
        "return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10), bit.lshift(1, 31), bit.bswap(1)}",
        "*5|:8|:14|:6|:-2147483648|:16777216|",
    );
    check(
        "return {bit.tohex(255), bit.tohex(255, -4), bit.tohex(1, -2147483648)}",
        "*3|$8|000000ff|$4|00FF|$8|00000001|",
    );
    check_error("return bit.band()", "user_script:1: bad argument #1 to 'band' (number expected, got no value)");
}

#[test]
fn patterns() {
    check("return {string.find('hello world', 'o w')}", "*2|:5|:7|");
    check("return {string.find('hello', '(l)(l)')}", "*4|:3|:4|$1|l|$1|l|");
    check("return {string.match('key = value', '^(%w+)%s*=%s*(%w+)$')}", "*2|$3|key|$5|value|");
    check("return string.match('[[x]]', '%b[]')", "$5|[[x]]|");
    check("return {string.gsub('hello', 'l', 'L')}", "*2|$5|heLLo|:2|");
    check("return {string.gsub('abc', '%w', '%0%0', 2)}", "*2|$5|aabbc|:2|");
    check("return string.gsub('$a $b', '%$(%w)', {a = 1})", "$4|1 $b|");
    check("return string.gsub('abc', '', '-')", "$7|-a-b-c-|");
    check(
        "local t = {} for k, v in string.gmatch('a=1, b=2', '(%w)=(%w)') do t[#t + 1] = k .. v end return t",
        "*2|$2|a1|$2|b2|",
    );
    check("return ('x'):rep(3)", "$3|xxx|");
    check("return string.find('THE (quick) fox', '%((%a+)%)')", ":5|");
    check("return string.match('THE fox', '%f[%a]%a+', 5)", "$3|fox|");
    check("return string.match('abab', '(ab)%1')", "$2|ab|");
    check("return {string.find('', '')}", "*2|:1|:0|");
    check_error("return string.find('a', '[')", "user_script:1: malformed pattern (missing ']')");
    check_error("return string.find('a', '%')", "user_script:1: malformed pattern (ends with '%')");
    check_error("return string.gsub('a', 'a', '%2')", "user_script:1: invalid capture index");
    check_error("return string.rep()", "user_script:1: bad argument #1 to 'rep' (string expected, got no value)");
}

#[test]
fn the_rest_of_the_api() {
    check("return redis.sha1hex('')", "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|");
    check("return redis.REDIS_VERSION_NUM", ":459269|");
    check("math.randomseed(1) return math.random(1000)", ":42|");
    check("return redis.acl_check_cmd('echo', 'x')", ":1|");
    check("return redis.breakpoint()", "$-1|");
    check_error("redis.set_repl(9)", "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    check_error("return redis.setresp(4)", "RESP version must be 2 or 3.");
    check_error("return redis.log(1)", "redis.log() requires two arguments or more.");
    check_error("return redis.call()", "Please specify at least one argument for this redis lib call");
    check_error("return redis.call({})", "Lua redis lib command arguments must be strings or integers");
    let mut host = host();
    run_in(
        &mut vm(),
        &mut host,
        "redis.log(redis.LOG_DEBUG, 'no') redis.log(redis.LOG_WARNING, 'a', 1)",
        &[],
        0,
        Proto::Resp2,
    );
    assert_eq!(host.logged, ["Warning a 1"]);
}
