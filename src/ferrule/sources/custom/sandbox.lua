-- The state that a Lua tool lives in: pure functions only, a watch over its instructions, and JSON in and out.
--
-- Given: poll() says whether the call is over; limit(on) puts the bound on memory on or off. No tool reaches either:
-- they are upvalues of functions here, and the debug library, which could look at those, stays here too.
-- Everything that Ferrule itself calls is a local: a tool that changes its own globals changes nothing of this.

local poll, limit, patterns, STEP, MOST = ...

local debug_getmetatable, debug_setmetatable, sethook = debug.getmetatable, debug.setmetatable, debug.sethook
local error, getmetatable, ipairs, load, next, pcall = error, getmetatable, ipairs, load, next, pcall
local rawequal, rawget, rawlen, rawset, select, setmetatable = rawequal, rawget, rawlen, rawset, select, setmetatable
local tonumber, tostring, type, collectgarbage = tonumber, tostring, type, collectgarbage
local byte, char, find, format, gsub = string.byte, string.char, string.find, string.format, string.gsub
local match, sub, concat, utf8_char = string.match, string.sub, table.concat, utf8.char
local co_close, co_create = coroutine.close, coroutine.create
local co_resume, co_status = coroutine.resume, coroutine.status
local math_type, huge, stderr, clock = math.type, math.huge, io.stderr, os.clock

-- The watch. A hook belongs to one coroutine, so each one gets it. Once the call is over, the hook comes with every
-- instruction: a tool that catches the error in a pcall meets it again at once, all the way up.

local over = false

local polled = clock()

local function watch()
  if not over then
    local now = clock()
    if now >= polled and now - polled < 0.01 then return end -- to ask takes longer than to look at the clock
    polled = now
    if not poll() then return end
    over = true
  end
  sethook(watch, "", 1)
  error("the tool was stopped: its time is up", 0)
end

-- Where C calls nest as deep as they may, no hook can be called any more: it fails, and whoever catches that goes on.
-- So everything that catches looks at the clock itself.
local function watched(original)
  return function(...)
    watch()
    return original(...)
  end
end

local function new_coroutine(body)
  local made = co_create(body)
  sethook(made, watch, "", STEP)
  return made
end

-- JSON.

local null = setmetatable({}, {
  __tostring = function() return "null" end,
  __newindex = function() error("null cannot be changed", 2) end,
  __metatable = "null",
})
local arrays = setmetatable({}, {__mode = "k"}) -- tables that are arrays even while they are empty

local DEPTH = 100
local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}

local function escaped(one)
  return ESCAPES[one] or format("\\u%04x", byte(one))
end

local function quoted(text)
  return '"' .. gsub(text, '[%c"\\]', escaped) .. '"'
end

local function number(value)
  if math_type(value) == "integer" then return format("%d", value) end
  if value ~= value or value == huge or value == -huge then return "null" end
  local text = format("%.17g", value)
  return find(text, "[.e]") and text or text .. ".0"
end

local function is_array(value)
  local count = 0
  for _ in next, value do count = count + 1 end
  if count == 0 then return arrays[value] == true end
  for index = 1, count do
    if rawget(value, index) == nil then return false end
  end
  return true
end

local function put(value, out, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = quoted(value)
  elseif kind == "number" then
    out[#out + 1] = number(value)
  elseif kind == "boolean" then
    out[#out + 1] = value and "true" or "false"
  elseif kind == "nil" or rawequal(value, null) then
    out[#out + 1] = "null"
  elseif kind ~= "table" then
    error("a " .. kind .. " has no JSON form", 0)
  elseif depth >= DEPTH then
    error("a table nests more than " .. DEPTH .. " deep, or holds itself", 0)
  elseif is_array(value) then
    out[#out + 1] = "["
    for index = 1, rawlen(value) do
      if index > 1 then out[#out + 1] = "," end
      put(rawget(value, index), out, depth + 1)
    end
    out[#out + 1] = "]"
  else
    out[#out + 1] = "{"
    local first = true
    for key, member in next, value do
      if type(key) ~= "string" and math_type(key) ~= "integer" then
        error("a table has a key that is neither text nor a whole number", 0)
      end
      if not first then out[#out + 1] = "," end
      first = false
      out[#out + 1] = quoted(tostring(key)) .. ":"
      put(member, out, depth + 1)
    end
    out[#out + 1] = "}"
  end
end

local function encode(value)
  local out = {}
  put(value, out, 0)
  return concat(out)
end

local UNESCAPED = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}

local function bad(at)
  error("this is not JSON, at byte " .. at, 0)
end

local function read_text(text, at)
  local pieces, from = {}, at + 1
  while true do
    local stop = find(text, '["\\]', from)
    if not stop then bad(at) end
    pieces[#pieces + 1] = sub(text, from, stop - 1)
    if byte(text, stop) == 34 then return concat(pieces), stop + 1 end
    local code = sub(text, stop + 1, stop + 1)
    if code == "u" then
      local high = tonumber(match(text, "^%x%x%x%x", stop + 2) or bad(stop), 16)
      from = stop + 6
      local low = high >= 0xD800 and high < 0xDC00 and match(text, "^\\u([dD][c-fC-F]%x%x)", from)
      if low then
        high = 0x10000 + ((high - 0xD800) << 10) + (tonumber(low, 16) - 0xDC00)
        from = from + 6
      end
      pieces[#pieces + 1] = utf8_char(high)
    else
      pieces[#pieces + 1] = UNESCAPED[code] or bad(stop)
      from = stop + 2
    end
  end
end

local read_value

local function skip(text, at)
  return find(text, "[^ \t\r\n]", at) or #text + 1
end

local function read_array(text, at, depth)
  local made, count = {}, 0
  arrays[made] = true
  at = skip(text, at + 1)
  if byte(text, at) == 93 then return made, at + 1 end
  while true do
    count = count + 1
    made[count], at = read_value(text, at, depth)
    at = skip(text, at)
    local mark = byte(text, at)
    if mark == 93 then return made, at + 1 end
    if mark ~= 44 then bad(at) end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at, depth)
  local made, key = {}, nil
  at = skip(text, at + 1)
  if byte(text, at) == 125 then return made, at + 1 end
  while true do
    if byte(text, at) ~= 34 then bad(at) end
    key, at = read_text(text, at)
    at = skip(text, at)
    if byte(text, at) ~= 58 then bad(at) end
    made[key], at = read_value(text, skip(text, at + 1), depth)
    at = skip(text, at)
    local mark = byte(text, at)
    if mark == 125 then return made, at + 1 end
    if mark ~= 44 then bad(at) end
    at = skip(text, at + 1)
  end
end

local WORDS = {["true"] = true, ["false"] = false, null = null}

function read_value(text, at, depth)
  local mark = byte(text, at)
  if mark == 34 then return read_text(text, at) end
  if mark == 123 or mark == 91 then
    if depth >= DEPTH then error("it nests more than " .. DEPTH .. " deep", 0) end
    return (mark == 123 and read_object or read_array)(text, at, depth + 1)
  end
  local word = match(text, "^%a+", at)
  if word then
    if WORDS[word] == nil then bad(at) end
    return WORDS[word], at + #word
  end
  local digits = match(text, "^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = digits and tonumber(digits)
  if not value then bad(at) end
  return value, at + #digits
end

local function decode(text)
  if type(text) ~= "string" then error("json.decode takes a text", 2) end
  local value, at = read_value(text, skip(text, 1), 0)
  if skip(text, at) <= #text then bad(at) end
  return value
end

-- What a tool finds. Some functions work in C, where no watch comes: those get bounds.

local env = {
  _VERSION = _VERSION, assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next,
  pairs = pairs, pcall = watched(pcall), rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = rawset,
  select = select, tonumber = tonumber, tostring = tostring, type = type, null = null,
}
env._G = env

-- The original calls the function that words an error where the error is, which may be inside of the hook, and there no
-- watch comes. Here it is called afterwards.
local function after(words, ok, ...)
  if ok then return true, ... end
  return false, select(2, pcall(words, (...)))
end

env.xpcall = watched(function(body, words, ...)
  return after(words, pcall(body, ...))
end)

local function copied(from, names)
  local out = {}
  for name in string.gmatch(names, "%S+") do out[name] = from[name] end
  return out
end

env.math = copied(math, [[abs acos asin atan ceil cos deg exp floor fmod frexp huge ldexp log max maxinteger min
  mininteger modf pi rad random randomseed sin sqrt tan tointeger type ult]])
env.utf8 = copied(utf8, "char charpattern codepoint codes len offset")
env.os = copied(os, "clock date difftime time")
env.string = copied(string, [[byte char format len lower pack packsize rep reverse sub unpack upper]])
env.json = {
  encode = encode, decode = decode, null = null,
  array = function(of)
    of = of or {}
    if type(of) ~= "table" then error("json.array takes a table", 2) end
    arrays[of] = true
    return of
  end,
}

function env.setmetatable(of, metatable)
  -- Finalizers run whenever the collector likes, and without a watch.
  if type(metatable) == "table" and rawget(metatable, "__gc") ~= nil then
    error("__gc cannot be used here", 2)
  end
  return setmetatable(of, metatable)
end

function env.load(chunk, name, mode, ...)
  if type(chunk) == "function" then
    local pieces = {}
    for piece in chunk do
      if type(piece) ~= "string" then error("the reader of load must return texts", 2) end
      if piece == "" then break end
      pieces[#pieces + 1] = piece
    end
    chunk = concat(pieces)
  end
  if type(chunk) ~= "string" then error("load takes a text, or a function that returns texts", 2) end
  if mode ~= nil and mode ~= "t" and mode ~= "bt" then return nil, "only text can be loaded here" end
  local scope = env
  if select("#", ...) > 0 then scope = (...) end
  return load(chunk, name or "=(load)", "t", scope)
end

function env.collectgarbage(what)
  if what == nil or what == "collect" then return collectgarbage("collect") end
  if what == "count" then return collectgarbage("count") end
  error("collectgarbage takes collect or count here", 2)
end

local printed = 0

function env.print(...)
  local words = {}
  for index = 1, select("#", ...) do words[index] = tostring((select(index, ...))) end
  local line = concat(words, "\t")
  printed = printed + #line + 1
  if printed <= MOST.printed then stderr:write(line, "\n") end
end

env.coroutine = copied(coroutine, "isyieldable running status yield")
env.coroutine.resume = watched(co_resume)

env.coroutine.close = watched(function(of)
  -- One that died while its hook ran would run what it has to close without a watch.
  if co_status(of) == "dead" then return true end
  return co_close(of)
end)
env.coroutine.create = new_coroutine

function env.coroutine.wrap(body)
  local made = new_coroutine(body)
  local function pass(ok, ...)
    if ok then return ... end
    local message = ...
    error(message, 0)
  end
  return watched(function(...) return pass(co_resume(made, ...)) end)
end

local function plain(of, name)
  local metatable = debug_getmetatable(of)
  if type(of) ~= "table" or (metatable and rawget(metatable, "__len") ~= nil) then
    error("table." .. name .. " takes a table without __len here", 3)
  end
end

local function span(first, last, name)
  if math_type(first) ~= "integer" or math_type(last) ~= "integer" or first < -MOST.items or last > MOST.items then
    error("table." .. name .. " takes whole numbers up to " .. MOST.items .. " here", 3)
  end
end

local tables = copied(table, "concat insert move pack remove sort unpack")
env.table = {pack = tables.pack}

for _, name in ipairs {"insert", "remove"} do
  local original = tables[name]
  env.table[name] = function(of, ...)
    plain(of, name)
    return original(of, ...)
  end
end

local function less(one, other) return one < other end

function env.table.sort(of, before)
  plain(of, "sort")
  return tables.sort(of, before or less) -- in C, comparing long texts would keep the watch away
end

function env.table.concat(of, between, first, last)
  plain(of, "concat")
  first, last = first or 1, last or rawlen(of)
  span(first, last, "concat")
  return tables.concat(of, between, first, last)
end

function env.table.unpack(of, first, last)
  first, last = first or 1, last or #of
  span(first, last, "unpack")
  return tables.unpack(of, first, last)
end

function env.table.move(of, first, last, at, to)
  span(first, last, "move")
  span(at, at, "move")
  return tables.move(of, first, last, at, to or of)
end

for _, name in ipairs {"find", "match", "gmatch", "gsub"} do env.string[name] = patterns[name] end

debug_setmetatable("", {__index = env.string, __metatable = "string"})

-- What Ferrule calls: each returns what it has to say as one text. Nothing of the tool's runs outside of `guarded`.

local function worded(problem)
  if type(problem) == "string" then return problem end
  if type(problem) == "number" then return tostring(problem) end
  local ok, text = pcall(encode, problem)
  return ok and text or "an error that is a " .. type(problem)
end

local function guarded(body, ...)
  limit(true)
  sethook(watch, "", STEP)
  local ok, result = pcall(body, ...)
  if not ok then ok, result = false, select(2, pcall(worded, result)) end
  sethook()
  limit(false)
  return ok, result
end

local record

local function text_of(value)
  return type(value) == "string" and value or nil
end

local function described()
  if type(record) ~= "table" then return "null" end
  local schema = rawget(record, "input_schema")
  return encode {
    name = text_of(rawget(record, "name")),
    description = text_of(rawget(record, "description")),
    system_prompt = text_of(rawget(record, "system_prompt")),
    input_schema = type(schema) == "table" and schema or nil,
    execute = type(rawget(record, "execute")) == "function",
  }
end

local function compiled(source, name)
  local made, problem = load(source, name, "t", env)
  if not made then error(problem, 0) end
  record = made
end

local function ran()
  record = record()
  return described()
end

local function answered(input)
  local given = decode(input)
  for key, value in next, given do
    if rawequal(value, null) then given[key] = nil end -- for a function, nothing given
  end
  local result, failed = rawget(record, "execute")(given)
  return (failed and "!" or "=") .. encode(result)
end

return
  function(source, name) return guarded(compiled, source, name) end,
  function() return guarded(ran) end,
  function(input) return guarded(answered, input) end
