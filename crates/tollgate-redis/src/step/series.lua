-- A series: moments or blocks with the units that fell into each, oldest first, in one flat array
-- `cell.list` of (place, units) pairs. What lies before `cell.first` has been dropped. Only the
-- newest may hold no units: it keeps time from running backwards.

-- Whether `needed` fits beside the pairs from `first` on, or the place of the pair that must leave
-- before it does; and the sum of their units.
--
-- Sums from the newest: what stays is then never above the quota, and so exact.
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

-- Adds `cost` at `place`, which is not before the newest pair's.
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

-- Gives up to `cost` back to the pair at `place`, if that lies at `first` or later. The newest
-- stays, empty: older ones may be gone that would count before it.
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

-- The place of the newest pair from `first` on that holds units.
local function newest_used(list, first)
  for index = #list - 1, first, -2 do
    if list[index + 1] > 0 then
      return list[index]
    end
  end
  return nil
end

-- Two series as one: of what stands at one place in both, the larger. As a limit's `join`.
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
