-- The operations on reservations. Like the operations on a limit, these functions write nothing.

-- Returns the reading of the limit, and whether `cost` fits and may be reserved.
local function assess_reservation(limit, cell, ask, now)
  local cost, free = ask.cost, ask.most - ask.cost
  local fit, again_at, used, whole_at, mark, found, held =
    assess(limit, cell, cost > 0 and cost or 1, now)
  local room, room_at = FITS_NOW, 0
  if free < 0 then
    room = FITS_NEVER
  elseif found ~= DISCARDED and cell and cell.holds then
    room, room_at = holds_have_room(cell.holds, free, now)
  end
  if room == FITS_NEVER then
    fit = FITS_NEVER
  elseif room == FITS_AT and fit ~= FITS_NEVER then
    again_at = fit == FITS_AT and again_at > room_at and again_at or room_at
    fit = FITS_AT
  end
  return fit, again_at, used, whole_at, mark, found, held
end

-- Charges like a plain charge, and reserves the admitted units.
local function reserve(limit, ask, now, is_admitted)
  local key, cost, cell = ask.key, ask.cost, cells[ask.key]
  local fit, again_at, used, whole_at, mark, found, held = assess_reservation(limit, cell, ask, now)
  if cost == 0 or not (is_admitted or limit.counts_refused) then
    return reading(fit, fit, again_at, used, whole_at, mark, 0, found, held)
  end
  if found == DISCARDED then
    cell = nil
  end
  cell = count(limit, cell, cost, ask.id, now, is_admitted)
  if is_admitted then
    local _, _, _, _, place = limit.read(limit, cell, cost, now)
    cell.holds, cell.packed_used = cell.holds or {}, nil
    insert_hold(cell.holds, {
      id = ask.id, units = cost, mark = place, ends = ask.ends, is_charged = ask.is_charged,
    })
  end
  cells[key] = cell
  change(key, limit, now)
  local again, _
  again, again_at, used, whole_at, mark, _, held = assess_reservation(limit, cell, ask, now)
  if is_admitted then
    fit = FITS_NOW
  elseif fit ~= FITS_NOW then
    fit = again
  end
  return reading(fit, again, again_at, used, whole_at, mark, 0, found, held)
end

-- Extends a reservation that still exists; never shortens it.
local function extend(limit, ask, now)
  local key, cell = ask.key, cells[ask.key]
  local again, again_at, used, whole_at, mark, found, held = assess(limit, cell, 1, now)
  local index = found ~= DISCARDED and find_hold(cell, ask.id, now)
  if not index then
    return reading(FITS_NEVER, again, again_at, used, whole_at, mark, 0, found, held)
  end
  if ask.ends > cell.holds[index].ends then
    local hold
    cell, hold = take_hold(limit, cell, ask.id, now)
    cell.holds = cell.holds or {}
    insert_hold(cell.holds, {
      id = hold.id, units = hold.units, mark = hold.mark, ends = ask.ends,
      is_charged = hold.is_charged,
    })
    cells[key] = cell
    change(key, limit, now)
    again, again_at = assess(limit, cell, 1, now)
  end
  return reading(FITS_NOW, again, again_at, used, whole_at, mark, 0, found, held)
end

-- Releases a permit, whatever the request cost.
local function end_lease(limit, ask, now)
  local key, cell, given_back = ask.key, cells[ask.key], 0
  local again, again_at, used, whole_at, mark, found = assess(limit, cell, 1, now)
  if cell and found ~= DISCARDED then
    given_back = limit.refund(limit, cell, 0, 0, ask.id, now)
  end
  local fit = FITS_NEVER
  if given_back > 0 then
    fit = FITS_NOW
    change(key, limit, now)
    again, again_at, used, whole_at, mark = assess(limit, cell, 1, now)
  end
  return reading(fit, again, again_at, used, whole_at, mark, given_back, found)
end

-- Replaces the units of a reservation that still exists by the actual cost.
local function settle(limit, ask, now)
  if limit.kind == CONCURRENCY then
    return end_lease(limit, ask, now)
  end
  local key, cost, cell = ask.key, ask.cost, cells[ask.key]
  local again, again_at, used, whole_at, mark, found, held = assess(limit, cell, 1, now)
  if found == DISCARDED or not find_hold(cell, ask.id, now) then
    return reading(FITS_NEVER, again, again_at, used, whole_at, mark, 0, found, held)
  end
  local given_back, added, hold, _ = 0, 0, nil, nil
  cell, hold = take_hold(limit, cell, ask.id, now)
  if cost < hold.units then
    given_back = limit.refund(limit, cell, hold.units - cost, hold.mark, hold.id, now)
  else
    local free = ask.most > used and ask.most - used or 0
    added = cost - hold.units < free and cost - hold.units or free
    if added > 0 then
      cell = count(limit, cell, added, ask.id, now, true)
    end
  end
  cells[key] = cell
  change(key, limit, now)
  again, again_at, used, whole_at, mark, _, held = assess(limit, cell, 1, now)
  return reading(FITS_NOW, again, again_at, used, whole_at, mark, given_back, found, held, added)
end
