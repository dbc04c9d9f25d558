-- Lua's pattern functions, stoppable. The originals search by going back, in C, where nothing stops them: some patterns
-- take years. Where one could take long, the same search is done here, where the watch over a tool's instructions comes.

local byte, char, find, gsub, sub = string.byte, string.char, string.find, string.gsub, string.sub
local gmatch, match, concat, unpack, max = string.gmatch, string.match, table.concat, table.unpack, math.max
local error, setmetatable, tostring, type = error, setmetatable, tostring, type

local QUICK = 1e9 -- steps that the originals may take; about a second
local PLAIN = 1e11 -- the same for texts without anything special, which are compared much faster
local CAPTURES = 32
local OPEN, PLACE = -1, -2

local sets = setmetatable({}, {__mode = "v"})

-- Which characters an item stands for: the original says so.
local function set_of(item)
  local set = sets[item]
  if not set then
    set = {}
    for code = 0, 255 do set[code] = find(char(code), "^" .. item) ~= nil end
    sets[item] = set
  end
  return set
end

local function class_end(pattern, at)
  at = at + 1
  if sub(pattern, at, at) == "^" then at = at + 1 end
  repeat
    if at > #pattern then error("malformed pattern (missing ']')", 0) end
    at = at + (sub(pattern, at, at) == "%" and at < #pattern and 2 or 1)
  until sub(pattern, at, at) == "]"
  return at
end

local function single(pattern, at)
  local mark, stop = sub(pattern, at, at), at
  if mark == "%" then
    if at == #pattern then error("malformed pattern (ends with '%')", 0) end
    stop = at + 1
  elseif mark == "[" then
    stop = class_end(pattern, at)
  end
  local item = sub(pattern, at, stop)
  if mark ~= "%" and mark ~= "[" and mark ~= "." and find(mark, "%p") then item = "%" .. mark end
  local times = match(pattern, "^[*+?-]", stop + 1) or ""
  return {kind = "single", set = set_of(item), times = times}, stop + 1 + #times
end

local function special(pattern, at)
  local code = sub(pattern, at + 1, at + 1)
  if code == "b" then
    if at + 3 > #pattern then error("malformed pattern (missing arguments to '%b')", 0) end
    return {kind = "balanced", from = byte(pattern, at + 2), to = byte(pattern, at + 3)}, at + 4
  elseif code == "f" then
    if sub(pattern, at + 2, at + 2) ~= "[" then error("missing '[' after '%f' in pattern", 0) end
    local stop = class_end(pattern, at + 2)
    return {kind = "frontier", set = set_of(sub(pattern, at + 2, stop))}, stop + 1
  elseif find(code, "^%d") then
    return {kind = "again", number = byte(code) - 48}, at + 2
  end
  return single(pattern, at)
end

local function items_of(pattern, at)
  local items = {}
  while at <= #pattern do
    local mark, item = sub(pattern, at, at), nil
    if sub(pattern, at, at + 1) == "()" then
      item, at = {kind = "open", length = PLACE}, at + 2
    elseif mark == "(" then
      item, at = {kind = "open", length = OPEN}, at + 1
    elseif mark == ")" then
      item, at = {kind = "close"}, at + 1
    elseif mark == "$" and at == #pattern then
      item, at = {kind = "end"}, at + 1
    elseif mark == "%" then
      item, at = special(pattern, at)
    else
      item, at = single(pattern, at)
    end
    items[#items + 1] = item
  end
  return items
end

local function balanced(text, at, from, to)
  if byte(text, at) ~= from then return nil end
  local depth = 1
  for stop = at + 1, #text do
    local code = byte(text, stop)
    if code == to then
      depth = depth - 1
      if depth == 0 then return stop + 1 end
    elseif code == from then
      depth = depth + 1
    end
  end
  return nil
end

-- A search in one text: `run(at)` is where a match that begins there ends, `captures(...)` what it has caught.
local function search(text, items)
  local size, level, starts, lengths = #text, 0, {}, {}
  local try

  local function repeated(at, index, item)
    local set, times = item.set, item.times
    if times == "?" then
      local stop = at <= size and set[byte(text, at)] and try(at + 1, index + 1)
      return stop or try(at, index + 1)
    elseif times == "-" then
      while true do
        local stop = try(at, index + 1)
        if stop then return stop end
        if at > size or not set[byte(text, at)] then return nil end
        at = at + 1
      end
    end
    local most = at
    while most <= size and set[byte(text, most)] do most = most + 1 end
    for stop = most, times == "+" and at + 1 or at, -1 do
      local found = try(stop, index + 1)
      if found then return found end
    end
    return nil
  end

  local function opened(at, index, item)
    if level >= CAPTURES then error("too many captures", 0) end
    level = level + 1
    starts[level], lengths[level] = at, item.length
    local stop = try(at, index + 1)
    if not stop then level = level - 1 end
    return stop
  end

  local function closed(at, index)
    local number = level
    while number > 0 and lengths[number] ~= OPEN do number = number - 1 end
    if number == 0 then error("invalid pattern capture", 0) end
    lengths[number] = at - starts[number]
    local stop = try(at, index + 1)
    if not stop then lengths[number] = OPEN end
    return stop
  end

  local function again(at, number)
    if number < 1 or number > level or lengths[number] == OPEN then
      error("invalid capture index %" .. number, 0)
    end
    local length = lengths[number]
    if length == PLACE then return nil end
    local caught = sub(text, starts[number], starts[number] + length - 1)
    return sub(text, at, at + length - 1) == caught and at + length or nil
  end

  function try(at, index)
    while true do
      local item = items[index]
      if not item then return at end
      local kind = item.kind
      if kind == "single" then
        if item.times ~= "" then return repeated(at, index, item) end
        if at > size or not item.set[byte(text, at)] then return nil end
        at = at + 1
      elseif kind == "open" then
        return opened(at, index, item)
      elseif kind == "close" then
        return closed(at, index)
      elseif kind == "end" then
        return at == size + 1 and at or nil
      elseif kind == "frontier" then
        local before = at > 1 and byte(text, at - 1) or 0
        if item.set[before] or not item.set[byte(text, at) or 0] then return nil end
      else
        if kind == "balanced" then at = balanced(text, at, item.from, item.to) else at = again(at, item.number) end
        if not at then return nil end
      end
      index = index + 1
    end
  end

  local function capture(number, from, to)
    if number > level then
      if number > 1 then error("invalid capture index %" .. number, 0) end
      return sub(text, from, to - 1)
    end
    local length = lengths[number]
    if length == OPEN then error("unfinished capture", 0) end
    return length == PLACE and starts[number] or sub(text, starts[number], starts[number] + length - 1)
  end

  local function captures(from, to, whole)
    local out, count = {}, level == 0 and whole and 1 or level
    for number = 1, count do out[number] = capture(number, from, to) end
    return unpack(out, 1, count)
  end

  local function run(at)
    level = 0
    return try(at, 1)
  end

  return run, captures, capture
end

local function text_of(value, name, number)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  error("bad argument #" .. number .. " to '" .. name .. "' (string expected, got " .. type(value) .. ")", 3)
end

local function is_quick(text, pattern)
  local _, many = gsub(pattern, "[*+%-]", "")
  local _, more = gsub(pattern, "%%[b1-9]", "")
  local _, maybe = gsub(pattern, "%?", "")
  return (#pattern + 1) * (#text + 1) ^ (many + more + 1) * 2 ^ maybe <= QUICK
end

local function first(text, init)
  init = init or 1
  if init < 0 then return max(#text + init + 1, 1) end
  return max(init, 1)
end

local function anchored(pattern)
  return sub(pattern, 1, 1) == "^"
end

local function found(text, pattern, init, finish)
  local at, fixed = first(text, init), anchored(pattern)
  if at > #text + 1 then return nil end
  local run, captures = search(text, items_of(pattern, fixed and 2 or 1))
  repeat
    local stop = run(at)
    if stop then return finish(at, stop, captures) end
    at = at + 1
  until fixed or at > #text + 1
  return nil
end

local out = {}

function out.find(text, pattern, init, plain)
  text, pattern = text_of(text, "find", 1), text_of(pattern, "find", 2)
  if plain or not find(pattern, "[%^$*+?.([%%-]") then
    if #text * #pattern > PLAIN then error("the text is too long to look for such a long one in it", 2) end
    return find(text, pattern, init, true)
  end
  if is_quick(text, pattern) then return find(text, pattern, init) end
  return found(text, pattern, init, function(at, stop, captures) return at, stop - 1, captures(at, stop, false) end)
end

function out.match(text, pattern, init)
  text, pattern = text_of(text, "match", 1), text_of(pattern, "match", 2)
  if is_quick(text, pattern) then return match(text, pattern, init) end
  return found(text, pattern, init, function(at, stop, captures) return captures(at, stop, true) end)
end

function out.gmatch(text, pattern, init)
  text, pattern = text_of(text, "gmatch", 1), text_of(pattern, "gmatch", 2)
  if is_quick(text, pattern) then return gmatch(text, pattern, init) end
  local at, last = first(text, init), nil
  local run, captures = search(text, items_of(pattern, 1))
  return function()
    while at <= #text + 1 do
      local from = at
      local stop = run(from)
      if stop and stop ~= last then
        at, last = stop, stop
        return captures(from, stop, true)
      end
      at = at + 1
    end
    return nil
  end
end

local function filled(replacement, from, to, text, capture)
  return (gsub(replacement, "%%(.?)", function(code)
    if code == "%" then return "%" end
    if code == "0" then return sub(text, from, to - 1) end
    if not find(code, "^%d") then error("invalid use of '%' in replacement string", 0) end
    return tostring(capture(byte(code) - 48, from, to))
  end))
end

function out.gsub(text, pattern, replacement, most)
  text, pattern = text_of(text, "gsub", 1), text_of(pattern, "gsub", 2)
  local kind = type(replacement)
  if is_quick(text, pattern) or (kind ~= "string" and kind ~= "number" and kind ~= "table" and kind ~= "function") then
    return gsub(text, pattern, replacement, most)
  end
  most = most or #text + 1
  local fixed, at, last, count, pieces = anchored(pattern), 1, nil, 0, {}
  local run, captures, capture = search(text, items_of(pattern, fixed and 2 or 1))
  while count < most do
    local stop = run(at)
    if stop and stop ~= last then
      count = count + 1
      local value
      if kind == "function" then
        value = replacement(captures(at, stop, true))
      elseif kind == "table" then
        value = replacement[capture(1, at, stop)]
      else
        value = filled(tostring(replacement), at, stop, text, capture)
      end
      if not value then
        value = sub(text, at, stop - 1)
      elseif type(value) ~= "string" and type(value) ~= "number" then
        error("invalid replacement value (a " .. type(value) .. ")", 2)
      end
      pieces[#pieces + 1] = tostring(value)
      at, last = stop, stop
    elseif at <= #text then
      pieces[#pieces + 1] = sub(text, at, at)
      at = at + 1
    else
      break
    end
    if fixed then break end
  end
  pieces[#pieces + 1] = sub(text, at)
  return concat(pieces), count
end

function out.set_quick(steps) QUICK = steps end

return out
