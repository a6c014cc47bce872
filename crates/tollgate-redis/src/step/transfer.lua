-- Export and import of the whole state of one limit and subject: returned for a transfer to another
-- store, and joined with the state from another store. Its encoding is a letter and records,
-- whatever its kind.

local function counts(limit, cell, now)
  if not cell or cell.kind ~= limit.kind then
    return false
  end
  local _, _, _, _, _, found = assess(limit, cell, 1, now)
  return found == STATE
end

-- Returns the length of the cell, which is zero if no cell counts, and its bytes.
local function append_cell(limit, key, now)
  local cell, bytes = cells[key], ""
  if counts(limit, cell, now) then
    bytes = pack_tagged(cell)
  end
  return pack("<I4", #bytes) .. bytes
end

-- Keeps the last records of a list that is too long for one key. Every limit with such a long list
-- has a quota that these records fill.
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

-- Joins two cells.
local function join_counted(limit, one, other, now)
  if not one.holds and not other.holds then
    return limit.join(limit, one, other)
  end
  one, other = cell_as_of(limit, one, now), cell_as_of(limit, other, now)
  local holds = join_holds(limit, one.holds or {}, other.holds or {})
  one.holds, other.holds = nil, nil
  local joined = one
  if counts(limit, other, now) then
    joined = counts(limit, one, now) and limit.join(limit, one, other) or other
  end
  joined.holds, joined.packed_used = holds, nil
  return joined
end

-- Joins `other` with the cell of `key`. A cell that does not count is left out; if neither counts,
-- nothing changes.
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
