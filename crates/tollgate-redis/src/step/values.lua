-- The values of the current command's keys.

-- The number of keys that are read by one MGET, which is limited by Lua's stack.
local READ_CHUNK = 1000

-- By the indexes of the keys: `values` contains the read values (false: missing), `cells` the
-- decoded cells of opened keys, and `counted` the units counted in open windows. Above
-- `last_opened` there are neither cells nor counted units, except for foreign values.
local names, values, cells, counted, last_opened = nil, nil, {}, {}, 0
-- The entry in `values` for a key that a job of the command reset; its length is that of an empty
-- string.
local FORGOTTEN = {}
-- Whether the keys without a value were checked for other types.
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

-- Marks the existing keys from `from` to `to` without a value as foreign.
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

-- Opens the cell of `key` in `cells`, if there is one. MGET returns nothing for a key of another
-- type. All keys without a value are therefore checked once more together: those that exist are
-- foreign. Values that no step of this version writes are foreign too.
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
      -- The units counted in open windows are written separately.
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
