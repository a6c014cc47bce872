-- A series: times or blocks with their units, oldest first, in one flat array `cell.list` of
-- (position, units) pairs. Pairs before `cell.first` have been dropped. Only the newest may have no
-- units: it keeps time from moving backwards.

-- Returns whether `needed` fits in addition to the pairs from `first` on; if not, the position of
-- the pair that must expire first; and the sum of the units.
--
-- Sums from the newest pair: the remaining sum is then never above the quota, and therefore exact.
local function weigh(list, first, quota, needed)
  local free = quota - needed
  local used, staying, blocking = 0, 0, nil
  for index = #list - 1, first, -2 do
    local units = list[index + 1]
    used = after(used, units)
    if not blocking then
      if staying + units <= free then
        staying = staying + units
      else
        blocking = list[index]
      end
    end
  end
  if free < 0 then
    return FITS_NEVER, nil, used
  elseif blocking then
    return FITS_AT, blocking, used
  end
  return FITS_NOW, nil, used
end

-- Adds `cost` at `place`, which is not before the newest pair.
local function add_to_series(cell, place, cost)
  local list = cell.list
  local last = #list - 1
  local has_newest = last >= cell.first
  if has_newest and list[last] == place then
    list[last + 1] = after(list[last + 1], cost)
    return
  end
  if has_newest and list[last + 1] == 0 then
    last = last - 2
  end
  list[last + 2], list[last + 3] = place, cost
end

-- Removes up to `units` units, newer ones first, but none of the newest `kept` units.
local function remove_from_series(cell, kept, units)
  local list, from, to = cell.list, nil, nil
  for index = #list - 1, cell.first, -2 do
    local used = list[index + 1]
    if used <= kept then
      kept = kept - used
    else
      local removed = used - kept < units and used - kept or units
      list[index + 1] = used - removed
      kept, units = 0, units - removed
      if removed == used then
        from, to = index, to or index
      end
      if units == 0 then
        break
      end
    end
  end
  -- The pairs without units follow each other, and are usually the oldest.
  if from == cell.first then
    cell.first = to + 2
  elseif from then
    -- The newer pairs move once. `table.remove` would move them again for each removed number.
    local last, gap = #list, to + 2 - from
    for index = from, last do
      list[index] = list[index + gap]
    end
  end
end

-- Refunds up to `cost` to the pair at `place`, if it is at `first` or later. The newest pair stays,
-- with no units, because older pairs that were dropped would count before it.
local function refund_to_series(cell, first, place, cost)
  local list = cell.list
  for index = first, #list, 2 do
    if list[index] == place then
      local units = list[index + 1]
      if cost < units then
        list[index + 1] = units - cost
        return cost
      end
      list[index + 1] = 0
      if index + 1 < #list then
        table.remove(list, index)
        table.remove(list, index)
      end
      return units
    end
  end
  return 0
end

-- Returns the position of the newest pair from `first` on that has units.
local function newest_used(list, first)
  for index = #list - 1, first, -2 do
    if list[index + 1] > 0 then
      return list[index]
    end
  end
  return nil
end

-- Joins two series, as a limit's `join`: at a common position the larger number of units counts.
local function join_series(_, one, other)
  local list, others = one.list, other.list
  local index, last, at, others_last = one.first, #list, other.first, #others
  local joined, size = {}, 0
  while index < last or at < others_last do
    local place, others_place = list[index], others[at]
    local units = 0
    if place and not (others_place and others_place < place) then
      units, index = list[index + 1], index + 2
    end
    if others_place and not (place and place < others_place) then
      units = units > others[at + 1] and units or others[at + 1]
      place, at = others_place, at + 2
    end
    if units > 0 or index > last and at > others_last then
      joined[size + 1], joined[size + 2] = place, units
      size = size + 2
    end
  end
  return { kind = one.kind, list = joined, first = 1 }
end
