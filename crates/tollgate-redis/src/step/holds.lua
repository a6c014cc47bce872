-- Reservations. A cell with any has them in `holds`, sorted by expiry. They are immutable, because
-- two cells may share them.

-- More reservations than any subject has.
local MAX_HOLDS = 1000
local HOLD_RECORD, HOLD_BYTES = "<c16I7I7I7B", 38

local function pack_holds(holds)
  local parts = { "h" .. pack("<I7", #holds) }
  for index = 1, #holds do
    local hold = holds[index]
    local is_charged = hold.is_charged and 1 or 0
    parts[index + 1] = pack(HOLD_RECORD, hold.id, hold.units, hold.mark, hold.ends, is_charged)
  end
  return table.concat(parts)
end

-- Returns the reservations in bytes that begin with `h`, and the position after them; nil if they
-- are out of order or out of range.
local function unpack_holds(bytes)
  local size = #bytes
  if size < 8 then
    return nil
  end
  local count, position = unpack_bytes("<I7", bytes, 2)
  if count < 1 or count > MAX_HOLDS or size < 8 + count * HOLD_BYTES then
    return nil
  end
  local holds, lowest = {}, 0
  for index = 1, count do
    local id, units, mark, ends, flag
    id, units, mark, ends, flag, position = unpack_bytes(HOLD_RECORD, bytes, position)
    if units < 1 or units > MAX or mark > MAX or ends < lowest or ends > MAX or flag > 1 then
      return nil
    end
    holds[index] = { id = id, units = units, mark = mark, ends = ends, is_charged = flag == 1 }
    lowest = ends
  end
  return holds, position
end

local function units_of_holds(holds)
  local units = 0
  for index = 1, #holds do
    units = after(units, holds[index].units)
  end
  return units
end

-- Inserts a reservation in the order of expiry.
local function insert_hold(holds, hold)
  local index = #holds
  while index > 0 and holds[index].ends > hold.ends do
    holds[index + 1] = holds[index]
    index = index - 1
  end
  holds[index + 1] = hold
end

local function copy_cell(cell)
  local copy = {}
  for name, value in pairs(cell) do
    copy[name] = value
  end
  local list = cell.list
  if list then
    copy.list = {}
    for index = 1, #list do
      copy.list[index] = list[index]
    end
  end
  return copy
end

-- Ends an expired reservation as of its expiry; returns the released units.
local function expire_reservations(limit, cell, hold)
  if hold.is_charged then
    return 0
  end
  return limit.refund(limit, cell, hold.units, hold.mark, hold.id, hold.ends)
end

-- Returns the cell with every reservation that expired by `now` released, or charged, as of its own
-- expiry. The result is a copy, unless none expired.
local function cell_as_of(limit, cell, now)
  local holds = cell and cell.holds
  if not holds or now < holds[1].ends or cell.kind ~= limit.kind then
    return cell
  end
  local copy, kept = copy_cell(cell), {}
  for index = 1, #holds do
    local hold = holds[index]
    if hold.ends <= now then
      expire_reservations(limit, copy, hold)
    else
      kept[#kept + 1] = hold
    end
  end
  copy.holds = kept[1] and kept
  return copy
end

-- Returns the time at which units that do not fit now fit: at `again_at` as units expire, or
-- earlier if reservations expire before.
local function held_fits_at(limit, cell, needed, again_at)
  local copy, holds = copy_cell(cell), cell.holds
  for index = 1, #holds do
    local hold = holds[index]
    if again_at <= hold.ends then
      break
    end
    if expire_reservations(limit, copy, hold) > 0 then
      local fit, later = limit.read(limit, copy, needed, hold.ends)
      if fit == FITS_NOW then
        return hold.ends
      end
      again_at = later
    end
  end
  return again_at
end

-- Does the same as a limit's `read` for a cell with reservations, and also returns the reserved
-- units.
local function read_held(limit, cell, needed, now)
  cell = cell_as_of(limit, cell, now)
  local fit, again_at, used, whole_at, mark, found = limit.read(limit, cell, needed, now)
  if found == DISCARDED or not cell.holds then
    return fit, again_at, used, whole_at, mark, found
  end
  if fit == FITS_AT then
    again_at = held_fits_at(limit, cell, needed, again_at)
  end
  return fit, again_at, used, whole_at, mark, STATE, units_of_holds(cell.holds)
end

-- Returns when units can be reserved in addition to the existing reservations, if at most `free`
-- may be.
local function holds_have_room(holds, free, now)
  local first, size = 1, #holds
  while first <= size and holds[first].ends <= now do
    first = first + 1
  end
  local units, count = 0, size - first + 1
  for index = first, size do
    units = after(units, holds[index].units)
  end
  local fit, room_at = FITS_NOW, 0
  while units > free or count >= MAX_HOLDS do
    units, count = units - holds[first].units, count - 1
    fit, room_at = FITS_AT, holds[first].ends
    first = first + 1
  end
  return fit, room_at
end

-- Counts an admitted charge, or a refused one that counts; reservations stay.
local function count(limit, cell, cost, id, now, is_admitted)
  cell = cell_as_of(limit, cell, now)
  local holds = cell and cell.holds
  local take = is_admitted and limit.take or limit.take_refused
  cell = take(limit, cell, cost, id, now)
  cell.holds = holds
  return cell
end

-- Returns the index of the reservation of `id`, unless it expired.
local function find_hold(cell, id, now)
  local holds = cell and cell.holds
  for index = 1, holds and #holds or 0 do
    if holds[index].id == id and now < holds[index].ends then
      return index
    end
  end
  return nil
end

-- Removes the reservation of `id` from the cell as of `now`.
local function take_hold(limit, cell, id, now)
  cell = cell_as_of(limit, cell, now)
  local hold = table.remove(cell.holds, find_hold(cell, id, now))
  if not cell.holds[1] then
    cell.holds = nil
  end
  return cell, hold
end

-- Joins the reservations of two records of one subject. A reservation in only one of them may be
-- settled in the other: it can still be settled, and otherwise its units stay used. A reservation
-- in both has the position in the state that `join` keeps: the bucket with fewer tokens, or the
-- window that opened first.
local function join_holds(limit, ones, others)
  local is_last = limit.kind == TOKEN_BUCKET
  local by_id, joined = {}, {}
  for _, hold in ipairs(others) do
    by_id[hold.id] = hold
  end
  for _, hold in ipairs(ones) do
    local known = by_id[hold.id]
    by_id[hold.id] = nil
    insert_hold(joined, {
      id = hold.id,
      mark = known and (known.mark > hold.mark) == is_last and known.mark or hold.mark,
      units = known and known.units < hold.units and known.units or hold.units,
      ends = known and known.ends > hold.ends and known.ends or hold.ends,
      is_charged = not known or known.is_charged or hold.is_charged,
    })
  end
  for _, hold in ipairs(others) do
    if by_id[hold.id] then
      insert_hold(joined, {
        id = hold.id, mark = hold.mark, units = hold.units, ends = hold.ends, is_charged = true,
      })
    end
  end
  while #joined > MAX_HOLDS do
    table.remove(joined, 1)
  end
  return joined[1] and joined
end
