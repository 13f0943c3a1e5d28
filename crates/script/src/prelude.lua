-- The sandbox. Runs once in each interpreter, before any script.
--
-- Scripts see proxies: empty tables whose metatable reads from the real table and refuses to write. The real tables are
-- reachable from this file's locals alone. Nothing here may use a global after the end of this file, as scripts can
-- give any Lua function another environment.
--
-- Errors of native functions arrive as objects of the binding; `pcall` and its like show scripts the string or table
-- that `reveal` makes of them.

local native, is_eval = ...
local _G, error, getmetatable, setmetatable, rawset, rawget, next, pairs, pcall, type, unpack, select, tostring =
  _G, error, getmetatable, setmetatable, rawset, rawget, next, pairs, pcall, type, unpack, select, tostring
local xpcall, newproxy, setfenv, tonumber = xpcall, newproxy, setfenv, tonumber
local create, resume, running = coroutine.create, coroutine.resume, coroutine.running
local insert, concat = table.insert, table.concat
local status = coroutine.status
local reveal, compile, readonly = native.reveal, native.compile, native.readonly

local READONLY = "Attempt to modify a readonly table"
-- The proxy of each protected table, and what it stands for.
local behind = {}
-- Metatables that may not get a finalizer.
local without_gc = {}
-- What `getmetatable` finds on proxies that have no metatable for scripts.
local hidden = {}
-- How deep coroutines resume each other.
local depth_of = setmetatable({}, { __mode = "k" })
local DEPTH_MAX = 24
-- The most that `load` reads.
local SOURCE_MAX, PIECES_MAX = 16777216, 1000000

local function proxy_of(real, shown)
  local proxy = {}
  behind[proxy] = real
  return setmetatable(proxy, { __index = real, __newindex = readonly, __metatable = shown or hidden })
end
behind[hidden] = {}
setmetatable(hidden, { __newindex = readonly, __metatable = hidden })

local function got(...)
  if select("#", ...) == 0 then return "no value" end
  return type((...))
end

local function bad(index, name, wanted, ...)
  error("bad argument #" .. index .. " to '" .. name .. "' (" .. wanted .. " expected, got " .. got(...) .. ")", 3)
end

local real = {}

-- Errors ---------------------------------------------------------------------------------------------------------

local function settle(ok, err, ...)
  if ok then return true, err, ... end
  if type(err) == "userdata" then err = reveal(err) end
  if type(err) == "table" then
    local text = err.err
    if type(text) == "string" or type(text) == "number" then err = text end
  end
  return false, err
end

function real.pcall(...)
  -- Redis: without a function, nothing is called and nothing comes of it.
  if select("#", ...) == 0 then return end
  return settle(pcall(...))
end

local function handle(handler, ok, err, ...)
  if ok then return true, err, ... end
  if type(err) == "userdata" then err = reveal(err) end
  local handled, result = pcall(handler, err)
  if handled then return false, result end
  return false, "error in error handling"
end

-- The handler runs after the stack was unwound: within a hook it could not be interrupted.
function real.xpcall(...)
  if select("#", ...) < 2 then error("bad argument #2 to 'xpcall' (value expected)", 2) end
  local f, handler = ...
  return handle(handler, pcall(f))
end

-- Coroutines -----------------------------------------------------------------------------------------------------

local function after_resume(ok, err, ...)
  if ok then return true, err, ... end
  if type(err) == "userdata" then err = reveal(err) end
  return false, err
end

local function deeper(co)
  local from = running()
  local depth = (from and depth_of[from] or 0) + 1
  depth_of[co] = depth
  return depth <= DEPTH_MAX
end

local function resume_coroutine(co, ...)
  if type(co) ~= "thread" then error("bad argument #1 to 'resume' (coroutine expected)", 2) end
  if status(co) == "suspended" and not deeper(co) then return false, "C stack overflow" end
  return after_resume(resume(co, ...))
end

local function rethrow(ok, err, ...)
  if ok then return err, ... end
  if type(err) == "userdata" then err = reveal(err) end
  if type(err) == "string" then error(err, 3) end
  error(err, 0)
end

local function wrap(f)
  if type(f) ~= "function" then error("bad argument #1 to 'wrap' (Lua function expected)", 2) end
  local co = create(f)
  return function(...)
    if status(co) == "suspended" and not deeper(co) then error("C stack overflow", 2) end
    return rethrow(resume(co, ...))
  end
end

-- Tables and environments ----------------------------------------------------------------------------------------

function real.rawset(...)
  local t, key, value = ...
  if type(t) ~= "table" then bad(1, "rawset", "table", ...) end
  if behind[t] then error(READONLY, 0) end
  if without_gc[t] and key == "__gc" then return t end
  if select("#", ...) < 3 then error("bad argument #" .. select("#", ...) + 1 .. " to 'rawset' (value expected)", 2) end
  if key == nil then error("table index is nil", 0) end
  if key ~= key then error("table index is NaN", 0) end
  return rawset(t, key, value)
end

function real.rawget(...)
  local t, key = ...
  if type(t) ~= "table" then bad(1, "rawget", "table", ...) end
  return rawget(behind[t] or t, key)
end

function real.next(...)
  local t, key = ...
  if type(t) ~= "table" then bad(1, "next", "table", ...) end
  if behind[t] then return next(behind[t], key) end
  return next(t, key)
end

function real.pairs(...)
  local t = ...
  if type(t) ~= "table" then bad(1, "pairs", "table", ...) end
  local from = behind[t]
  if from then
    local copy = {}
    for key, value in next, from do copy[key] = value end
    return next, copy, nil
  end
  return next, t, nil
end

function real.setmetatable(...)
  local t, meta = ...
  if type(t) ~= "table" then bad(1, "setmetatable", "table", ...) end
  if meta ~= nil and type(meta) ~= "table" or select("#", ...) < 2 then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  end
  if behind[t] then error(READONLY, 0) end
  local current = getmetatable(t)
  if current ~= nil and (type(current) ~= "table" or current.__metatable ~= nil) then
    error("cannot change a protected metatable", 2)
  end
  return setmetatable(t, meta)
end

function real.getmetatable(...)
  if select("#", ...) == 0 then error("bad argument #1 to 'getmetatable' (value expected)", 2) end
  local meta = getmetatable((...))
  if meta == hidden then return nil end
  return meta
end

function real.setfenv(f, env)
  if type(env) ~= "table" then bad(2, "setfenv", "table", env) end
  local level = tonumber(f)
  if level == nil then return setfenv(f, env) end
  -- The environment of the interpreter itself belongs to all scripts.
  if level == 0 then return end
  if level < 0 then error("bad argument #1 to 'setfenv' (level must be non-negative)", 2) end
  return (setfenv(level + 1, env))
end

function real.newproxy(meta)
  if meta == nil or meta == false then return newproxy(false) end
  if meta ~= true then return newproxy(meta) end
  local made = newproxy(true)
  local of = getmetatable(made)
  without_gc[of] = true
  setmetatable(of, {
    __newindex = function(t, key, value)
      if key ~= "__gc" then rawset(t, key, value) end
    end,
    __metatable = hidden,
  })
  return made
end

function real.unpack(...)
  local t, first, last = ...
  if type(t) ~= "table" then bad(1, "unpack", "table", ...) end
  if first == nil and last == nil then return unpack(t) end
  local from, to = tonumber(first or 1), tonumber(last or #t)
  if from == nil then bad(2, "unpack", "number", first) end
  if to == nil then bad(3, "unpack", "number", last) end
  if not (to - from < 8000) or from < -2147483648 or to > 2147483647 then error("too many results to unpack", 2) end
  if to < from then return end
  return unpack(t, from, to)
end

-- Source ---------------------------------------------------------------------------------------------------------

function real.loadstring(...)
  local source, name = ...
  if type(source) ~= "string" and type(source) ~= "number" then bad(1, "loadstring", "string", ...) end
  return compile(source, name)
end

-- All pieces are read before the first is parsed: a reader that collects garbage meets no half-made function.
function real.load(...)
  local reader, name = ...
  if type(reader) ~= "function" then bad(1, "load", "function", ...) end
  local pieces, count, bytes = {}, 0, 0
  while true do
    local ok, piece = pcall(reader)
    if not ok then
      if type(piece) == "userdata" then piece = reveal(piece) end
      return nil, piece
    end
    if piece == nil or piece == "" then break end
    if type(piece) ~= "string" and type(piece) ~= "number" then
      return nil, "reader function must return a string"
    end
    count = count + 1
    pieces[count] = piece
    bytes = bytes + #tostring(piece)
    if bytes > SOURCE_MAX or count > PIECES_MAX then return nil, "not enough memory" end
  end
  return compile(concat(pieces), name == nil and "=(load)" or name)
end

-- Libraries ------------------------------------------------------------------------------------------------------

local function copy(from)
  local made = {}
  for key, value in next, from do made[key] = value end
  return made
end

local strings = copy(_G.string)
for name, f in next, native.string do strings[name] = f end
strings.gfind = strings.gmatch

local tables = copy(_G.table)
local function no_table(...)
  error("bad argument #1 to 'insert' (table expected, got " .. got(...) .. ")", 3)
end

function tables.insert(...)
  local t = ...
  if type(t) ~= "table" then no_table(...) end
  if behind[t] then error(READONLY, 0) end
  local count = select("#", ...)
  if count == 2 then
    local _, value = ...
    insert(t, value)
  elseif count == 3 then
    local _, position, value = ...
    if tonumber(position) == nil then bad(2, "insert", "number", position) end
    insert(t, position, value)
  else
    error("wrong number of arguments to 'insert'", 2)
  end
end

local coroutines = copy(_G.coroutine)
coroutines.resume = resume_coroutine
coroutines.wrap = wrap

local maths = copy(_G.math)
maths.random, maths.randomseed = native.random, native.randomseed

local redis = native.redis
redis.call, redis.pcall = native.call, native.redis_pcall

for _, name in next, {
  "tostring", "assert", "tonumber", "rawequal", "type", "select", "gcinfo", "ipairs", "_VERSION", "error", "getfenv",
} do
  real[name] = _G[name]
end
real.collectgarbage = native.collect
real.string = proxy_of(strings)
real.table = proxy_of(tables)
real.math = proxy_of(maths)
real.coroutine = proxy_of(coroutines)
real.cjson = proxy_of(native.cjson)
real.cmsgpack = proxy_of(native.cmsgpack)
real.bit = proxy_of(native.bit)
real.struct = proxy_of(native.struct)
real.redis = proxy_of(redis)
function native.cjson.new()
  return copy(native.cjson)
end
if is_eval then
  real.__redis__err__handler = function(err) return err end
end

local of_strings = getmetatable("")
of_strings.__index = strings
of_strings.__metatable = proxy_of({ __index = real.string })

-- What a library sees while it is loaded.
local loading = {
  redis = proxy_of({
    register_function = native.register_function,
    log = redis.log,
    LOG_DEBUG = redis.LOG_DEBUG,
    LOG_VERBOSE = redis.LOG_VERBOSE,
    LOG_NOTICE = redis.LOG_NOTICE,
    LOG_WARNING = redis.LOG_WARNING,
    REDIS_VERSION = redis.REDIS_VERSION,
    REDIS_VERSION_NUM = redis.REDIS_VERSION_NUM,
  }),
}
local missing = { __index = native.missing_global }
setmetatable(behind[loading.redis], missing)
setmetatable(loading, missing)

-- The global table becomes a proxy itself.
for key in next, copy(_G) do _G[key] = nil end
behind[_G] = real
real._G = _G
local of_globals = { __index = real, __newindex = readonly, __metatable = proxy_of(missing) }
setmetatable(real, missing)
setmetatable(_G, of_globals)

-- For the interpreter ----------------------------------------------------------------------------------------------

local function invoke(f, handler, keys, args)
  return xpcall(function() return f(keys, args) end, handler)
end

return { globals = real, loading = loading, of_globals = of_globals, xpcall = xpcall, pcall = pcall, invoke = invoke }
