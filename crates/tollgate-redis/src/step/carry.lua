-- What is kept for one limit and subject as a whole: told to whoever carries it to another store,
-- and made one with what another store kept. As bytes it is a letter and records, whatever its kind.

local function counts(limit, cell, now)
  if not cell or cell.kind ~= limit.kind then
    return false
  end
  local _, _, _, _, _, found = limit.read(limit, cell, 1, now)
  return found == STATE
end

-- The bytes of the cell behind their number, which is zero where none counts.
local function tell_cell(limit, key, now)
  local cell, bytes = cells[key], ""
  if counts(limit, cell, now) then
    if cell.kind == FIXED_WINDOW then
      bytes = TAGS[FIXED_WINDOW] .. pack("<I7I7", cell.resets_at, cell.used)
    else
      bytes = pack_cell(cell)
    end
  end
  return pack("<I4", #bytes) .. bytes
end

-- Leaves the last records of a list that no key may hold whole. No limit whose list grows so long
-- has a quota that these do not fill.
local function keep_last(cell)
  local list = cell.list
  local most = MAX_RECORDS * (cell.kind == CONCURRENCY and 3 or 2)
  if not list or #list <= most then
    return
  end
  local kept, dropped = {}, #list - most
  for index = 1, most do
    kept[index] = list[dropped + index]
  end
  cell.list = kept
end

-- Joins `other` with the cell of `key`. What counts as none is left out; where both do, nothing
-- changes.
local function join_cell(limit, key, other, now)
  if not counts(limit, other, now) then
    return
  end
  local cell = cells[key]
  if counts(limit, cell, now) then
    other = limit.join(limit, cell, other)
    keep_last(other)
  end
  cells[key] = other
  change(key, limit, now)
end
