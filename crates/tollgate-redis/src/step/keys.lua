-- Writes to the server's keys.

-- Returns the time to live of a key: until its cell expires, plus the limit's skew.
local function time_to_live(cell, limit, now)
  local over_at, holds = limit.over_at(limit, cell), cell.holds
  if holds and holds[#holds].ends > over_at then
    over_at = holds[#holds].ends
  end
  local rest = over_at > now and over_at - now or 0
  local live = rest + limit.skew_max
  return live > 0 and live or 1
end

local function write_cell(key, cell, limit, now)
  local packed_used = cell and cell.packed_used
  if packed_used and cell.used <= LARGEST_PACKED_USED then
    -- The window was open: its reset and the key's expiry stay.
    local counted = cell.used - packed_used
    if counted ~= 0 then
      -- Most increments are 1, and converting a number to text is expensive.
      call("INCRBY", key, counted == 1 and "1" or counted)
    end
  elseif is_blank(cell) then
    call("DEL", key)
  else
    call("SET", key, pack_cell(cell), "PX", time_to_live(cell, limit, now))
  end
end

-- Writes the changes. A server that is out of memory rejects writes until a script has written with
-- a command that cannot grow. If no keys may be created, such a command comes first.
local function write_cells(keys)
  local first = changed[1]
  if room == TIGHT and first and not is_blank(cells[first]) then
    local live = time_to_live(cells[first], changed_by[first], changed_at[first])
    call("PEXPIRE", keys[first], live)
  end
  for key = 1, last_opened do
    local units = counted[key]
    if units then
      -- Most increments are 1, and converting a number to text is expensive.
      call("INCRBY", keys[key], units == 1 and "1" or units)
    end
  end
  for index = 1, #changed do
    local key = changed[index]
    write_cell(keys[key], cells[key], changed_by[key], changed_at[key])
  end
  for _, guard in ipairs(guards) do
    local key, remembered_until, now, skew_max = unpack(guard)
    local bytes = "r" .. pack("<I7", remembered_until)
    call("SET", keys[key], bytes, "PX", remembered_until - now + skew_max)
  end
end
