-- What lies under the keys of the command in hand.

-- Keys read by one MGET: what passes Lua's stack at once.
local READ_CHUNK = 1000

-- By the indexes of their keys: what was read (false: nothing); as far as somebody asked, what it
-- means; the units counted in open windows beside that. Above the last opened key there are neither,
-- but for what is foreign.
local names, values, cells, counted, last_opened = nil, nil, {}, {}, 0
-- Stands in `values` for what a job of the command forgot; as long as an empty string.
local FORGOTTEN = {}
-- Whether what MGET did not find was asked for once more.
local is_foreign_known

local function read_values(keys)
  names, is_foreign_known = keys, false
  if last_opened > 0 then
    cells, counted, last_opened = {}, {}, 0
  end
  local size = #keys
  if size > 0 and size <= READ_CHUNK then
    values = call("MGET", unpack(keys))
    return
  end
  values = {}
  for from = 1, size, READ_CHUNK do
    local to = from + READ_CHUNK - 1 < size and from + READ_CHUNK - 1 or size
    local part = call("MGET", unpack(keys, from, to))
    for index = from, to do
      values[index] = part[index - from + 1]
    end
  end
end

-- Marks what exists among the keys `from` to `to` without a value as foreign.
local function mark_foreign(from, to)
  local missing = {}
  for index = from, to do
    if not values[index] then
      missing[#missing + 1] = names[index]
    end
  end
  if #missing == 0 or call("EXISTS", unpack(missing)) == 0 then
    return
  end
  for index = from, to do
    if not values[index] and call("EXISTS", names[index]) == 1 then
      cells[index] = { kind = FOREIGN }
    end
  end
end

-- Makes the cell of `key` stand in `cells` if there is one. MGET answers nothing for a key of
-- another type, so what it did not find is asked for once more, together: it is foreign if it
-- exists. What no step of this form wrote is, too.
local function open_cell(key)
  if cells[key] then
    return
  end
  last_opened = key > last_opened and key or last_opened
  local bytes = values[key]
  if bytes == FORGOTTEN then
    return
  elseif bytes then
    local cell = unpack_window(bytes) or unpack_tagged(bytes) or { kind = FOREIGN }
    local units = counted[key]
    if units then
      -- These are written by themselves.
      cell.used, cell.packed_used = cell.used + units, cell.packed_used + units
    end
    cells[key] = cell
  elseif not is_foreign_known then
    is_foreign_known = true
    for from = 1, #names, READ_CHUNK do
      mark_foreign(from, from + READ_CHUNK - 1 < #names and from + READ_CHUNK - 1 or #names)
    end
  end
end
