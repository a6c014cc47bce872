-- What is kept for one limit and subject as a whole: told to whoever carries it to another store,
-- and made one with what another store kept. As bytes it is a letter and records, whatever its kind.

local function counts(limit, cell, now)
  if not cell or cell.kind ~= limit.kind then
    return false
  end
  local _, _, _, _, _, found = assess(limit, cell, 1, now)
  return found == STATE
end

-- The bytes of the cell behind their number, which is zero where none counts.
local function append_cell(limit, key, now)
  local cell, bytes = cells[key], ""
  if counts(limit, cell, now) then
    bytes = pack_tagged(cell)
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

-- Two cells that count as one.
local function join_counted(limit, one, other, now)
  if not one.holds and not other.holds then
    return limit.join(limit, one, other)
  end
  one, other = cell_as_of(limit, one, now), cell_as_of(limit, other, now)
  local holds = join_holds(one.holds or {}, other.holds or {})
  one.holds, other.holds = nil, nil
  local joined = one
  if counts(limit, other, now) then
    joined = counts(limit, one, now) and limit.join(limit, one, other) or other
  end
  joined.holds, joined.packed_used = holds, nil
  return joined
end

-- Joins `other` with the cell of `key`. What counts as none is left out; where both do, nothing
-- changes.
local function join_cell(limit, key, other, now)
  if not counts(limit, other, now) then
    return
  end
  local cell = cells[key]
  if counts(limit, cell, now) then
    other = join_counted(limit, cell, other, now)
    keep_last(other)
  else
    other = cell_as_of(limit, other, now)
  end
  cells[key] = other
  change(key, limit, now)
end
