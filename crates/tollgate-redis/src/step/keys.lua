-- What goes from and to the server's keys.

-- Keys read by one MGET: what passes Lua's stack at once.
local READ_CHUNK = 1000

-- The cells under `keys`. MGET answers nothing for a key of another type, so what it does not
-- find is asked for once more: it is foreign if it exists.
local function read_cells(keys)
  local cells, missing = {}, {}
  for from = 1, #keys, READ_CHUNK do
    local to = from + READ_CHUNK - 1 < #keys and from + READ_CHUNK - 1 or #keys
    local values = redis.call("MGET", unpack(keys, from, to))
    for index = from, to do
      local bytes = values[index - from + 1]
      if bytes then
        cells[index] = unpack_cell(bytes)
      else
        missing[#missing + 1] = index
      end
    end
  end
  for from = 1, #missing, READ_CHUNK do
    local to = from + READ_CHUNK - 1 < #missing and from + READ_CHUNK - 1 or #missing
    local names = {}
    for index = from, to do
      names[#names + 1] = keys[missing[index]]
    end
    if redis.call("EXISTS", unpack(names)) > 0 then
      for index = from, to do
        if redis.call("EXISTS", keys[missing[index]]) == 1 then
          cells[missing[index]] = { kind = FOREIGN }
        end
      end
    end
  end
  return cells
end

-- How long a key must live: until its cell is over, and late by the limit's skew.
local function time_to_live(cell, changed)
  local limit, now = changed.limit, changed.now
  local over_at = limit.over_at(limit, cell)
  local rest = over_at > now and over_at - now or 0
  local live = rest + limit.skew_max
  return live > 0 and live or 1
end

local function write_cell(key, cell, changed)
  if not cell or is_blank(cell) then
    redis.call("DEL", key)
  elseif cell.packed_used and cell.used <= LARGEST_PACKED_USED then
    -- The window was open: its reset and the key's expiry stay.
    if cell.used ~= cell.packed_used then
      redis.call("INCRBY", key, cell.used - cell.packed_used)
    end
  else
    redis.call("SET", key, pack_cell(cell), "PX", time_to_live(cell, changed))
  end
end

-- Writes what changed. The server refuses to grow when it is out of memory, until a script has
-- written something that cannot: where there is no room for keys, that comes first.
local function write_cells(call, keys)
  local cells, changes, changed = call.cells, call.changes, call.changed
  local first = changed[1]
  if call.room == TIGHT and first and cells[first] and not is_blank(cells[first]) then
    redis.call("PEXPIRE", keys[first], time_to_live(cells[first], changes[first]))
  end
  for _, key in ipairs(changed) do
    write_cell(keys[key], cells[key], changes[key])
  end
  for _, guard in ipairs(call.guards) do
    local key, remembered_until, now, skew_max = unpack(guard)
    local bytes = "r" .. pack("<I7", remembered_until)
    redis.call("SET", keys[key], bytes, "PX", remembered_until - now + skew_max)
  end
end
