//! Scripts that are run by both servers. Each gets the keys `k1` `k2` and the arguments `a1` `7` `-3.5`.

/// One script a line; `--` begins a remark.
pub(super) const SCRIPTS: &str = r#"
-- replies
return 1
return -1
return 3.99
return -3.99
return 1e300
return 2^53
return 0/0
return ''
return 'a\0b'
return 'text\r\nmore'
return true
return false
return nil
return
return {}
return {1, 2, 3}
return {1, 2, nil, 4}
return {1, {2, {3, {4, {}}}}}
return {a = 1}
return {1, a = 2}
return {ok = 'fine'}
return {ok = 'fi\r\nne'}
return {ok = 5}
return {err = 'ERR bad'}
return {err = 'BAD'}
return {err = 'My bad'}
return {err = ''}
return {{err = 'ERR inner'}, {ok = 'OK'}, 3}
return {double = 3.5}
return {double = 1/3}
return {double = 1e100}
return {double = 1/0}
return {map = {a = 1}}
return {map = {[1] = {2}}}
return {set = {a = true}}
return {big_number = '12345678901234567890'}
return {big_number = '1\r\n2'}
return {verbatim_string = {format = 'txt', string = 'hello'}}
return {verbatim_string = {format = 'txt'}}
return function() end
return coroutine.create(function() end)
return redis.status_reply('hey')
return redis.status_reply()
return redis.status_reply(1)
return redis.error_reply('hey')
return redis.error_reply('-hey')
return redis.error_reply('HEY you')
return redis.error_reply('-HEY you')
return redis.error_reply(5)
return redis.error_reply()
return redis.error_reply('a', 'b')
return redis.error_reply('a\r\n')
return KEYS
return ARGV
return {KEYS[1], KEYS[2], KEYS[3], ARGV[1]}
return {#KEYS, #ARGV}
KEYS[1] = 'changed' return KEYS
return tonumber(ARGV[2]) + tonumber(ARGV[3])
return ARGV[2] * 2
return ARGV[1] .. ARGV[2]
return tostring(1e15)
return tostring(123456789012345678)
return tostring(0.1)
return tostring(-0)
return tostring(1/0)
return 10 .. 20
-- calls
return redis.call('set', KEYS[1], 'v')
return redis.call('get', KEYS[1])
return redis.call('get', KEYS[2])
return redis.call('incr', KEYS[1])
return redis.pcall('incr', KEYS[1])
return redis.pcall('incr', KEYS[1]).err
return redis.call('del', KEYS[1], KEYS[2])
return redis.call('incrby', KEYS[1], 5)
return redis.call('incrby', KEYS[1], 5.0)
return redis.call('incrby', KEYS[1], 5.5)
return redis.call('incrbyfloat', KEYS[1], 0.1)
return redis.call('set', KEYS[1], 1e20) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 0.1 + 0.2) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 2^63) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], -2^53) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 1/0) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 3.0) and redis.call('get', KEYS[1])
return redis.call('del', KEYS[1]) + redis.call('rpush', KEYS[1], 'a', 'b', 'c')
return redis.call('lrange', KEYS[1], 0, -1)
return redis.call('lpop', KEYS[1])
return redis.call('lpop', KEYS[2])
return redis.call('blpop', KEYS[2], 0)
return redis.call('blpop', KEYS[1], 0)
return type(redis.call('blpop', KEYS[2], 0))
return redis.call('get', KEYS[1])
return redis.call('hset', KEYS[2], 'f', 'v', 'g', 'w')
return redis.call('hgetall', KEYS[2])
return redis.call('hget', KEYS[2], 'nope') == false
redis.setresp(3) return redis.call('hgetall', KEYS[2])
redis.setresp(3) return redis.call('hgetall', KEYS[2]).map.f
redis.setresp(3) return redis.call('hget', KEYS[2], 'nope')
redis.setresp(3) return redis.call('hget', KEYS[2], 'nope') == nil
redis.setresp(3) return redis.call('get', 'nope') == nil
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(2) return true
return redis.call('del', KEYS[2]) + redis.call('zadd', KEYS[2], 1.5, 'm', 2, 'n')
return redis.call('zscore', KEYS[2], 'm')
redis.setresp(3) return redis.call('zscore', KEYS[2], 'm')
redis.setresp(3) return redis.call('zscore', KEYS[2], 'm').double
redis.setresp(3) return redis.call('zrange', KEYS[2], 0, -1, 'withscores')
return redis.call('zrange', KEYS[2], 0, -1, 'withscores')
return redis.call('del', KEYS[2]) + redis.call('sadd', KEYS[2], 'm')
return redis.call('smembers', KEYS[2])
redis.setresp(3) return redis.call('smembers', KEYS[2])
redis.setresp(3) return redis.call('smembers', KEYS[2]).set.m
redis.setresp(3) return redis.call('sismember', KEYS[2], 'm')
return redis.call('ping')
return redis.call('ping').ok
return redis.call('echo', 'x')
return redis.call('type', KEYS[2])
return redis.call('type', KEYS[2])['ok']
return redis.call('exists', KEYS[2])
return redis.call('object', 'encoding', KEYS[2])
return redis.call('debug', 'object', KEYS[2])
return redis.call('PING')
return redis.call('select', 3)
return redis.call('select', 99)
return {redis.call('select', 1), redis.call('set', KEYS[1], 'in1'), redis.call('select', 0), redis.call('get', KEYS[1])}
return redis.call('flushdb')
return redis.call('dbsize')
return redis.call('keys', '*')
return redis.call('publish', 'ch', 'x')
return redis.call('expire', KEYS[1], 100)
return redis.call('getrange', KEYS[1], 0, 1)
return redis.call('setrange', KEYS[1], 3, 'x')
return redis.call('mset', KEYS[1], 1, KEYS[2], 2)
return redis.call('mget', KEYS[1], KEYS[2], 'none')
return redis.call('append', KEYS[1], ARGV[1])
return redis.call('sort', KEYS[1])
return redis.call('xadd', KEYS[2], '*', 'a', 1)
return redis.call('command', 'count') > 0
return redis.call('lastsave') > 0
return redis.call('time')[1] ~= nil
return redis.call('unwatch')
return redis.call('wait', 0, 0)
return redis.call('config', 'get', 'maxmemory')
return redis.call('client', 'id')
return redis.call('acl', 'whoami')
-- refused calls
redis.call()
redis.pcall()
redis.call('nope')
redis.pcall('nope')
return redis.pcall('nope')
redis.call('get')
redis.call('get', 'a', 'b')
redis.call({})
redis.call(nil)
redis.call(true)
redis.call('get', {})
redis.call('get', nil)
redis.call('get', function() end)
redis.call(5)
redis.call('config')
redis.call('config', 'nope')
redis.call('eval', 'return 1', 0)
redis.call('evalsha', 'x', 0)
redis.call('script', 'flush')
redis.call('function', 'list')
redis.call('fcall', 'f', 0)
redis.call('multi')
redis.call('exec')
redis.call('watch', 'a')
redis.call('subscribe', 'a')
redis.call('monitor')
redis.call('auth', 'x')
redis.call('hello')
redis.call('quit')
redis.call('reset')
redis.call('shutdown')
redis.call('spop')
redis.call('lpush', KEYS[1])
redis.call('lpush', KEYS[2], 1)
redis.call('hset', KEYS[1], 'a')
local a = redis.call('lpush', KEYS[2], 1)
local ok, e = pcall(redis.call, 'nope') return {tostring(ok), e}
local ok, e = pcall(redis.call, 'lpush', KEYS[2], 1) return {tostring(ok), e}
local e = redis.pcall('lpush', KEYS[2], 1) return {type(e), e.err, e.ok or 'none'}
local e = redis.pcall('lpush', KEYS[2], 1) return e
local e = redis.pcall('nope') return {e.err, e.source or 'no source', e.line or 'no line'}
local e = redis.pcall('nope') error(e)
local t = {} for k, v in pairs(redis.pcall('nope')) do t[#t + 1] = k .. '=' .. tostring(v) end table.sort(t) return t
-- errors
error('boom')
error('boom', 0)
error('boom', 2)
error({err = 'boom'})
error({err = 'My boom'})
error({err = 5})
error(nil)
error(true)
error(42)
error()
error({'no err', err = 'with'})
local x = nil; return x.y
local x = nil; return x()
return nofunc()
return 'a' + 1
return {} .. 'a'
return #5
return 1 < 'a'
return {} < {}
local t = {} t[nil] = 1
local t = {} t[0/0] = 1
for i = 1, 'x' do end
for i = 1, 10, 0 do break end return 1
assert(false)
assert(nil, 'asserted')
assert(false, {err = 'table'})
return assert(1, 2)
return select('#', assert(1, 2, 3))
if
return return
x = = 1
return 'unfinished
goto x
return 0x
return "\300"
local a <const> = 1
return pcall()
return pcall(error)
return {pcall(error, 'x')}
return {pcall(error, {err = 'x'})}
local ok, e = pcall(error, {1, 2}) return e
local ok, e = pcall(function() error('in') end) return e
local ok, e = pcall(function() error('in', 2) end) return e
local ok, e = pcall(function() local x = nil; return x.y end) return e
local ok, e = pcall(string.rep) return e
local ok, e = pcall(nil) return e
return {xpcall(function() return 1, 2 end, function() return 3 end)}
local ok, e = xpcall(function() error('a') end, function(e) return 'handled ' .. e end) return e
local ok, e = xpcall(function() error('a') end, function(e) error('b') end) return e
local ok, e = xpcall(function() redis.call('nope') end, function(e) return type(e) end) return e
local ok, e = xpcall(function() redis.call('nope') end, function(e) return e.err end) return e
local function f() f() end local ok, e = pcall(f) return string.sub(e, 1, 40)
local function f() return 1 + f() end f()
-- globals and the sandbox
x = 1
return x
return _G.x
_G.x = 1
rawset(_G, 'x', 1)
return rawget(_G, 'x')
setmetatable(_G, {})
return getmetatable(_G) == nil
return type(getmetatable(_G).__index)
getmetatable(_G).__index = nil
table.insert(_G, 1)
redis.call = nil
redis.x = 1
return redis.x
string.x = 1
return string.x
table.concat = nil
cjson.encode = nil
bit.x = 1
math.pi = 3
return math.pi
return print
return os
return io
return debug
return require
return dofile
return loadfile
return package
return module
return _VERSION
return type(_G)
return _G == _G._G
return type(redis)
return type(string)
return type(newproxy)
return type(newproxy(true))
return type(getmetatable(newproxy(true)))
return newproxy() == newproxy()
return getfenv() == _G
return getfenv(0) == _G
return getfenv(1) == _G
return type(getfenv(pcall))
local f = function() return y end setfenv(f, {y = 5}) return f()
setfenv(1, {redis = redis}) return redis.call('ping')
local t = {} for k in pairs(_G) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(redis) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(string) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(table) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(math) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(coroutine) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(cjson) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(cmsgpack) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(bit) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(struct) do t[#t + 1] = k end table.sort(t) return t
return next({})
return {next({5})}
return {next({a = 1})}
return next({}, 'x')
return type(next)
return rawequal('a', 'a')
return rawequal({}, {})
return rawget({5}, 1)
return rawset({}, 1, 2)[1]
rawset({}, nil, 1)
rawset(1, 2, 3)
pairs(nil)
pairs()
ipairs()
ipairs(nil)
next(nil)
setmetatable(1, {})
setmetatable({}, 1)
setmetatable({})
getmetatable()
return getmetatable({}) == nil
return getmetatable(setmetatable({}, {__metatable = 'locked'}))
setmetatable(setmetatable({}, {__metatable = 'locked'}), {})
local t = setmetatable({}, {__index = function(t, k) return k .. '!' end}) return t.foo
local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) t.x = 4 return t.x
local t = setmetatable({}, {__call = function(self, a) return a end}) return t('called')
local t = setmetatable({}, {__tostring = function() return 'me' end}) return tostring(t)
local t = setmetatable({}, {__add = function(a, b) return 'sum' end}) return t + 1
local t = setmetatable({}, {__len = function() return 9 end}) return #t
local t = setmetatable({1, 2, 3}, {}) local n = 0 for _, v in ipairs(t) do n = n + v end return n
return loadstring('return 1 + 1')()
return loadstring('return x')()
local f, e = loadstring('return +') return e
local f, e = loadstring('if', 'name') return e
local f, e = loadstring('if', '@name') return e
local f, e = loadstring('if', '=name') return e
local f, e = loadstring('\27Lua') return e
return loadstring(string.dump(function() end))
local n = 0 return load(function() n = n + 1 if n == 1 then return 'return 7' end end)()
local f, e = load(function() return {} end) return e
loadstring()
loadstring({})
load()
return collectgarbage('count') > 0
return collectgarbage()
return collectgarbage('nope')
return gcinfo() > 0
return tostring(nil)
tostring()
return tonumber('0x10')
return tonumber('10', 2)
return tonumber('zz', 36)
return tonumber('')
return tonumber('1e1')
return tonumber(' 5 ')
tonumber()
tonumber('1', 99)
return type(nil)
type()
return select('#', 1, nil, nil)
return select(2, 'a', 'b', 'c')
return select(-1, 'a', 'b', 'c')
select(0)
return {unpack({1, 2, 3})}
return {unpack({1, 2, 3}, 2)}
return {unpack({1, 2, 3}, 2, 3)}
return select('#', unpack({}, 1, 3))
return select('#', unpack({}, 3, 1))
local x = unpack({}, 1, 1e8)
local x = unpack()
local x = unpack(5)
-- coroutines
local co = coroutine.create(function(a) return coroutine.yield(a + 1) * 2 end) local r = coroutine.resume return {select(2, r(co, 1)), select(2, r(co, 10))}
local f = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return {f(), f(), f()}
local co = coroutine.create(function() error('in co') end) local ok, e = coroutine.resume(co) return e
local co = coroutine.create(function() redis.call('nope') end) local ok, e = coroutine.resume(co) return {type(e), e.err}
local f = coroutine.wrap(function() error('in wrap') end) local ok, e = pcall(f) return e
local f = coroutine.wrap(function() error({err = 'tbl'}) end) f()
local f = coroutine.wrap(function() redis.call('nope') end) f()
local co = coroutine.create(function() end) coroutine.resume(co) return {coroutine.resume(co)}
return {coroutine.resume(coroutine.create(function() return 1, 2 end))}
coroutine.yield()
return coroutine.running() == nil
coroutine.resume(1)
coroutine.create(1)
coroutine.wrap(nil)
return coroutine.wrap(function() return redis.call('ping') end)()
-- strings
return string.byte('abc', 1, -1)
return {string.byte('abc', 1, -1)}
return string.char(72, 105)
string.char(256)
return string.format('%5d|%-5d|%05d|%x|%X|%o|%c|%e|%g|%q|%s|%%', 42, 42, 42, 255, 255, 8, 65, 1.5, 0.1, 'q"\n', 's')
return string.format('%10.3f|%-10s|%.2s', 3.14159, 'ab', 'xyz')
string.format('%d', 'x')
string.format('%d')
string.format('%y', 1)
string.format('%099999d', 1)
return string.format('%s', nil)
return string.len('a\0b')
return string.lower('ABC') .. string.upper('def')
return string.rep('ab', 3)
return string.rep('ab', 0)
return string.rep('ab', -1)
string.rep()
string.rep('x')
string.rep('x', 'y')
return string.reverse('abc')
return string.sub('hello', 2, -2)
return string.sub('hello', -3)
return ('x'):rep(3)
return ('%d'):format(5)
return #'hello'
return {string.find('hello world', 'o w')}
return {string.find('hello world', 'o', 6)}
return {string.find('hello', 'l+')}
return {string.find('hello', '(l)(l)')}
return {string.find('hello', 'xyz')}
return {string.find('hello', '')}
return {string.find('hello', '', 10)}
return {string.find('hello', '.', -2)}
return {string.find('a.b', '.', 1, true)}
return {string.find('a+b', '+', 1, true)}
return {string.find('abc', '^b')}
return {string.find('abc', '^a')}
return {string.find('abc', 'c$')}
return {string.find('a$c', '$', 1)}
string.find('a', '[')
string.find('a', '[a')
string.find('a', '[a%')
string.find('a', '%')
string.find('a', '(')
string.find('a', ')')
string.find('a', '(()')
string.find('a', '%b')
string.find('a', '%bx')
string.find('a', '%f')
string.find('a', '%1')
string.find()
string.find('a')
string.find('a', {})
return {string.match('key = value', '^(%w+)%s*=%s*(%w+)$')}
return {string.match('2024-01-15', '(%d+)-(%d+)-(%d+)')}
return {string.match('hello', '()ll()')}
return string.match('hello', 'h(.*)o')
return string.match('hello', 'h(.-)l')
return string.match('[[nested]]', '%b[]')
return string.match('THE (quick) fox', '%((%a+)%)')
return string.match('THE fox', '%f[%a]%a+', 5)
return string.match('abab', '(ab)%1')
return string.match('  trim  ', '^%s*(.-)%s*$')
return string.match('x', '[^%w]')
return string.match('a-b', '[a-]')
return string.match('a]b', '[]]')
return string.match('a^b', '[b^]')
return string.match('\0x', '%z')
return string.match('x_y', '[%w_]+')
return string.match('aaa', 'a?a?a?a?')
return {string.gsub('hello', 'l', 'L')}
return {string.gsub('hello', 'l', 'L', 1)}
return {string.gsub('hello', 'l', 'L', 0)}
return {string.gsub('hello', '', '-')}
return {string.gsub('hello', '(l)', '<%1>')}
return {string.gsub('hello', 'l', '%0%0')}
return {string.gsub('hello', 'l', '%%')}
return {string.gsub('hello world', '%w+', {hello = 'HI'})}
return {string.gsub('hello', 'l', function(c) return c:upper() end)}
return {string.gsub('hello', 'l', function(c) return nil end)}
return {string.gsub('hello', 'l', function(c) return false end)}
return {string.gsub('abc', '%w', {a = 1, b = true})}
return {string.gsub('hello', 'l', function(c) return {} end)}
string.gsub('hello', 'l', '%2')
string.gsub('hello', 'l')
string.gsub('hello', 'l', 5, 'x')
string.gsub('hello', 'l', true)
string.gsub('hello', 'l', function() error('in gsub') end)
return {string.gsub('abc', '^a', 'x')}
return {string.gsub('a b c', ' ', '')}
local t = {} for w in string.gmatch('one two', '%a+') do t[#t + 1] = w end return t
local t = {} for k, v in string.gmatch('a=1, b=2', '(%w)=(%w)') do t[#t + 1] = k .. v end return t
local t = {} for w in string.gmatch('abc', '') do t[#t + 1] = '-' .. w end return t
return string.gfind == string.gmatch
string.gmatch('a')
-- tables
return table.concat({1, 2, 3}, ',')
return table.concat({1, 2, 3}, ',', 2, 3)
return table.concat({})
table.concat({{}})
table.concat({1, nil, 3}, ',', 1, 3)
local t = {3, 1, 2} table.sort(t) return t
local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t
table.sort({1, 'a'})
table.sort({3, 1, 2}, function(a, b) error('in sort') end)
local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) return t
table.insert({}, 1, 2, 3)
table.insert({})
table.insert()
table.insert(nil, 1)
table.insert({}, 'x', 1)
local t = {1, 2, 3} return {table.remove(t), table.remove(t, 1), #t}
return table.remove({})
return table.getn({1, 2})
return table.maxn({1, [10] = 2})
local n = 0 table.foreach({1, 2}, function(k, v) n = n + v end) return n
local n = 0 table.foreachi({1, 2}, function(k, v) n = n + v end) return n
table.setn({}, 1)
-- math
return math.floor(3.7)
return math.ceil(3.2)
return math.max(1, 5, 3)
return math.min(1, 5, 3)
return math.abs(-5)
return math.sqrt(16)
return math.fmod(7, 3)
return math.pow(2, 10)
return tostring(math.huge)
return {math.modf(3.7)}
math.randomseed(7) return {math.random(1000), math.random(1000), math.random(5, 10)}
math.randomseed(0) return tostring(math.random())
math.randomseed(-5) return math.random(100000)
math.randomseed(123456789) return math.random(100000)
math.random(0)
math.random(5, 1)
math.random(1, 2, 3)
math.random('x')
math.randomseed()
math.floor()
math.max()
return 7 % 3
return -7 % 3
return 2^10
return 7 / 2
-- cjson
return cjson.encode({1, 2, 3})
return cjson.encode({a = 1})
return cjson.encode({})
return cjson.encode({{}})
return cjson.encode('text')
return cjson.encode('quote " slash / back \\ nl \n tab \t nul \0 del \127 hi \200')
return cjson.encode(nil)
return cjson.encode(cjson.null)
return cjson.encode(true)
return cjson.encode(1)
return cjson.encode(1.5)
return cjson.encode(1/3)
return cjson.encode(1e15)
return cjson.encode(1e100)
return cjson.encode(123456789012345)
return cjson.encode(-0.0001)
return cjson.encode(0.00001)
return cjson.encode({1, nil, 3})
return cjson.encode({[1] = 1, [5] = 5})
return cjson.encode({[1000] = 1})
return cjson.encode({[1.5] = 1})
return cjson.encode({[0] = 1})
return cjson.encode({[-1] = 1})
return cjson.encode({[true] = 1})
return cjson.encode(function() end)
return cjson.encode({function() end})
return cjson.encode(0/0)
return cjson.encode(1/0)
return cjson.encode()
return cjson.encode(1, 2)
return cjson.decode('[1, 2, {"a": [true, false, null]}]')[3].a[1]
return cjson.decode('"text"')
return cjson.decode('5')
return cjson.decode('  -1.5e3  ')
return cjson.decode('true')
return cjson.decode('null')
return cjson.decode('null') == cjson.null
return cjson.decode('{"a":{"b":{"c":"deep"}}}').a.b.c
return cjson.decode('"\\u0041\\u00e9\\u20ac\\ud83d\\ude00"')
return cjson.decode('"\\n\\t\\r\\b\\f\\/\\\\\\""')
return tostring(cjson.decode('1e400'))
return tostring(cjson.decode('0x1F'))
return tostring(cjson.decode('010'))
return tostring(cjson.decode('Infinity'))
return tostring(cjson.decode('-inf'))
return tostring(cjson.decode('nan'))
return #cjson.decode('[]')
return type(cjson.decode('{}'))
cjson.decode('')
cjson.decode('{')
cjson.decode('[')
cjson.decode('[1')
cjson.decode('[1,')
cjson.decode('[1,]')
cjson.decode('[1 2]')
cjson.decode('{"a"')
cjson.decode('{"a":')
cjson.decode('{"a":1')
cjson.decode('{"a":1,')
cjson.decode('{"a":1,}')
cjson.decode('{a:1}')
cjson.decode('{1:1}')
cjson.decode('"open')
cjson.decode('"bad \\x"')
cjson.decode('"\\u12"')
cjson.decode('"\\ud800"')
cjson.decode('"\\udc00"')
cjson.decode('tru')
cjson.decode('nul')
cjson.decode('+1')
cjson.decode('-')
cjson.decode('1 2')
cjson.decode('[] []')
cjson.decode('\0\0')
cjson.decode(string.rep('[', 1001))
cjson.decode()
cjson.decode(1)
cjson.decode({})
cjson.decode('1', 2)
local t = {} for i = 1, 1001 do t = {t} end return cjson.encode(t)
local t = {} t[1] = t return cjson.encode(t)
return {cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision()}
return {cjson.encode_sparse_array()}
return cjson.encode_keep_buffer()
return cjson.encode_invalid_numbers()
return cjson.decode_invalid_numbers()
cjson.encode_max_depth(0)
cjson.encode_number_precision(20)
cjson.encode_number_precision('x')
cjson.encode_sparse_array(1, 2, 3, 4)
cjson.encode_invalid_numbers('maybe')
cjson.encode_sparse_array(true, 2, 3) local s = cjson.encode({[1000] = 1}) cjson.encode_sparse_array(false, 2, 10) return s
cjson.encode_number_precision(3) local s = cjson.encode(1/3) cjson.encode_number_precision(14) return s
cjson.encode_invalid_numbers('null') local s = cjson.encode({1/0, 0/0}) cjson.encode_invalid_numbers(false) return s
cjson.encode_invalid_numbers(true) local s = cjson.encode({1/0, -1/0}) cjson.encode_invalid_numbers(false) return s
cjson.decode_invalid_numbers(false) local ok, e = pcall(cjson.decode, '0x10') cjson.decode_invalid_numbers(true) return e
-- cmsgpack
return cmsgpack.pack(1)
return cmsgpack.pack(-1)
return cmsgpack.pack(127) .. cmsgpack.pack(128) .. cmsgpack.pack(255) .. cmsgpack.pack(256) .. cmsgpack.pack(65535) .. cmsgpack.pack(65536)
return cmsgpack.pack(-32) .. cmsgpack.pack(-33) .. cmsgpack.pack(-128) .. cmsgpack.pack(-129) .. cmsgpack.pack(-32769) .. cmsgpack.pack(-2147483649)
return cmsgpack.pack(2^32) .. cmsgpack.pack(2^53) .. cmsgpack.pack(1.5) .. cmsgpack.pack(1/3) .. cmsgpack.pack(1/0)
return cmsgpack.pack('short') .. cmsgpack.pack(string.rep('x', 40)) .. cmsgpack.pack(string.rep('y', 300))
return cmsgpack.pack(true) .. cmsgpack.pack(false) .. cmsgpack.pack(nil) .. cmsgpack.pack(function() end)
return cmsgpack.pack({1, 2, 3}) .. cmsgpack.pack({}) .. cmsgpack.pack({a = 1}) .. cmsgpack.pack({[1] = 1, [3] = 3})
return cmsgpack.pack(1, 'a', {2})
cmsgpack.pack()
return {cmsgpack.unpack(cmsgpack.pack(1, 'a', true))}
return cmsgpack.unpack(cmsgpack.pack({a = {1, 2, {b = 'c'}}})).a[3].b
return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3))}
return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3), 1)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 5, 1)}
return {cmsgpack.unpack('')}
cmsgpack.unpack('\145')
cmsgpack.unpack('\193')
cmsgpack.unpack('\220\255\255')
cmsgpack.unpack('\219\255\255\255\255')
cmsgpack.unpack()
cmsgpack.unpack({})
cmsgpack.unpack_one('a', 5)
cmsgpack.unpack_one('a', -1)
cmsgpack.unpack_limit('a', -1)
cmsgpack.unpack_limit('a')
return {cmsgpack.unpack('\208\128\209\255\0\210\128\0\0\0\207\0\0\0\1\0\0\0\0')}
local t = {} for i = 1, 20 do t = {t} end return cmsgpack.pack(t)
-- struct
return struct.pack('b', 5) .. struct.pack('B', 200) .. struct.pack('h', -2) .. struct.pack('H', 65535)
return struct.pack('>i4', 1) .. struct.pack('<i4', 1) .. struct.pack('>I2', 258) .. struct.pack('i', -1)
return struct.pack('>l', 2^40) .. struct.pack('<L', 2^40) .. struct.pack('T', 5)
return struct.pack('f', 1.5) .. struct.pack('>d', 1/3) .. struct.pack('x') .. struct.pack('s', 'str')
return struct.pack('c3', 'abcdef') .. struct.pack('c0', 'whole') .. struct.pack('c', 'x')
return struct.pack('>!4 bi4', 1, 2)
return struct.pack('>!bi4', 1, 2)
return struct.pack('i16', -5)
return {struct.unpack('>i4', '\0\0\1\0')}
return {struct.unpack('<bBhH', '\255\255\1\2\3\4')}
return {struct.unpack('s', 'hello\0rest')}
return {struct.unpack('bc0', '\3abcdef')}
return {struct.unpack('c3', 'abcdef', 2)}
return {struct.unpack('f', struct.pack('f', 1.5))}
return {struct.unpack('>d', struct.pack('>d', 0.25))}
return {struct.unpack('i16', struct.pack('i16', -5))}
return struct.size('>!8bid')
return struct.size('c10')
struct.size('s')
struct.size('c0')
struct.size('?')
struct.pack('i33', 1)
struct.pack('i99999999999', 1)
struct.pack('!3i', 1)
struct.pack('z', 1)
struct.pack('i')
struct.pack('i', 'x')
struct.pack('c5', 'abc')
struct.pack()
struct.unpack('i', 'a')
struct.unpack('i', 'abcd', 3)
struct.unpack('i', 'abcd', 0)
struct.unpack('i', 'abcd', -1)
struct.unpack('s', 'unended')
struct.unpack('c0', 'abc')
struct.unpack('c4294967295', 'abc')
struct.unpack()
-- bit
return {bit.tobit(2^32 + 5), bit.tobit(-1), bit.bnot(0), bit.tobit(1.5), bit.tobit('7')}
return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10), bit.band(1), bit.bor(1, 2, 4, 8)}
return {bit.lshift(1, 31), bit.lshift(1, 32), bit.rshift(-1, 28), bit.arshift(-256, 4)}
return {bit.rol(0x12345678, 8), bit.ror(0x12345678, 8), bit.bswap(0x12345678)}
return {bit.tohex(255), bit.tohex(255, 4), bit.tohex(255, -4), bit.tohex(1, 0), bit.tohex(-1, 100)}
bit.band()
bit.band('x')
bit.lshift(1)
bit.tohex()
bit.tohex(1, 'x')
-- redis
return redis.sha1hex('')
return redis.sha1hex('abc')
return redis.sha1hex(123)
redis.sha1hex()
redis.sha1hex('a', 'b')
return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}
return {redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL}
redis.log()
redis.log(1)
redis.log('x', 'y')
redis.log(9, 'y')
redis.log(-1, 'y')
redis.log(redis.LOG_DEBUG, 'fine', 'more', 3)
redis.setresp()
redis.setresp(4)
redis.setresp('x')
redis.setresp('3') return true
redis.set_repl()
redis.set_repl(redis.REPL_ALL)
redis.set_repl(redis.REPL_NONE)
redis.set_repl(9)
redis.set_repl('x')
return redis.replicate_commands()
return redis.breakpoint()
return redis.debug('x')
return redis.acl_check_cmd('get', 'x')
return redis.acl_check_cmd('nope')
return redis.acl_check_cmd('config', 'get', 'x')
return redis.acl_check_cmd('config', 'nope')
redis.acl_check_cmd()
redis.acl_check_cmd({})
return redis.register_function
"#;

/// Scripts with more than a line.
pub(super) const LONG_SCRIPTS: &[&str] = &[
    "#!lua\nreturn 1",
    "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
    "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 1)",
    "#!lua flags=no-writes\nreturn redis.pcall('publish', 'a', 'b')",
    "#!lua flags=no-writes,allow-oom\nreturn 2",
    "#!lua flags=allow-cross-slot-keys,allow-stale,no-cluster\nreturn 3",
    "#!lua flags=nope\nreturn 1",
    "#!lua flags=\nreturn 1",
    "#!lua flags=no-writes,\nreturn 1",
    "#!lua name=x\nreturn 1",
    "#!lua x\nreturn 1",
    "#!other\nreturn 1",
    "#!\nreturn 1",
    "#!lua",
    "#!lua \"unbalanced\nreturn 1",
    "\n\nerror('line three')",
    "#!lua\n\nerror('line three')",
    "local x = 1\nif x then\n  return redis.call('nope')\nend",
    "local function deep()\n  error('deep')\nend\nlocal function outer()\n  deep()\nend\nouter()",
    "local function thrower()\n  redis.call('nope')\nend\nthrower()",
    "local s = ''\nfor i = 1, 10 do\n  s = s .. i .. ','\nend\nreturn s",
    "local t = {}\nfor i = 1, 300 do t[i] = i end\nreturn t",
    "local t = {}\nfor i = 1, 300 do t[i] = 'x' end\nreturn redis.call('del', unpack(t))",
    "local t = {}\nfor i = 1, 100 do t = {t} end\nreturn t",
    "return redis.call('set', KEYS[1], string.rep('v', 100000)) and #redis.call('get', KEYS[1])",
    "for i = 1, 100 do redis.call('incr', KEYS[1] .. 'n') end\nreturn redis.call('get', KEYS[1] .. 'n')",
    "--[[ a comment ]] return 'after'",
    "-- only a comment",
    "",
    "\\",
    "#comment",
];
