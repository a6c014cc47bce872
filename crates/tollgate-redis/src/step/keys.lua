-- What goes from and to the server's keys.

-- Keys read by one MGET: what passes Lua's stack at once.
local READ_CHUNK = 1000

-- Marks what exists among the `missing`, which MGET did not find, as foreign.
local function mark_foreign(keys, found, missing)
  for from = 1, #missing, READ_CHUNK do
    local to = from + READ_CHUNK - 1 < #missing and from + READ_CHUNK - 1 or #missing
    local names = {}
    for index = from, to do
      names[#names + 1] = keys[missing[index]]
    end
    if redis.call("EXISTS", unpack(names)) > 0 then
      for index = from, to do
        if redis.call("EXISTS", keys[missing[index]]) == 1 then
          found[missing[index]] = { kind = FOREIGN }
        end
      end
    end
  end
end

-- The cells under `keys`. MGET answers nothing for a key of another type, so what it does not
-- find is asked for once more: it is foreign if it exists. What no step of this form wrote is, too.
local function read_cells(keys)
  local found, missing = {}, nil
  for from = 1, #keys, READ_CHUNK do
    local to = from + READ_CHUNK - 1 < #keys and from + READ_CHUNK - 1 or #keys
    local values = redis.call("MGET", unpack(keys, from, to))
    for index = from, to do
      local bytes = values[index - from + 1]
      if bytes then
        found[index] = unpack_window(bytes) or unpack_tagged(bytes) or { kind = FOREIGN }
      else
        missing = missing or {}
        missing[#missing + 1] = index
      end
    end
  end
  if missing then
    mark_foreign(keys, found, missing)
  end
  return found
end

-- How long a key must live: until its cell is over, and late by the limit's skew.
local function time_to_live(cell, limit, now)
  local over_at = limit.over_at(limit, cell)
  local rest = over_at > now and over_at - now or 0
  local live = rest + limit.skew_max
  return live > 0 and live or 1
end

local function write_cell(key, cell, limit, now)
  local packed_used = cell.packed_used
  if packed_used and cell.used <= LARGEST_PACKED_USED then
    -- The window was open: its reset and the key's expiry stay.
    local counted = cell.used - packed_used
    if counted ~= 0 then
      -- Most counts are of one, and a number is dear to print.
      redis.call("INCRBY", key, counted == 1 and "1" or counted)
    end
  elseif is_blank(cell) then
    redis.call("DEL", key)
  else
    redis.call("SET", key, pack_cell(cell), "PX", time_to_live(cell, limit, now))
  end
end

-- Writes what changed. The server refuses to grow when it is out of memory, until a script has
-- written something that cannot: where there is no room for keys, that comes first.
local function write_cells(keys)
  local first = changed[1]
  if room == TIGHT and first and not is_blank(cells[first]) then
    local live = time_to_live(cells[first], changed_by[first], changed_at[first])
    redis.call("PEXPIRE", keys[first], live)
  end
  for index = 1, #changed do
    local key = changed[index]
    write_cell(keys[key], cells[key], changed_by[key], changed_at[key])
  end
  for _, guard in ipairs(guards) do
    local key, remembered_until, now, skew_max = unpack(guard)
    local bytes = "r" .. pack("<I7", remembered_until)
    redis.call("SET", keys[key], bytes, "PX", remembered_until - now + skew_max)
  end
end
