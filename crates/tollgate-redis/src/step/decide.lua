-- The operations of one charge, on one limit and one subject. These functions write nothing.

-- The state of the current command: the changed keys in their order, with the limit and the time of
-- each change; the refunds to record; whether keys may be created.
local changed, changed_by, changed_at, guards, room = {}, {}, {}, {}, 0

-- Marks the cell of `key` as changed, to be written at the end of the command.
local function change(key, limit, now)
  if not changed_by[key] then
    changed[#changed + 1] = key
  end
  changed_by[key], changed_at[key] = limit, now
end

-- Returns the reading of the limit, and the units that are reserved. A cell of another kind counts
-- as missing and is reported as discarded.
local function assess(limit, cell, needed, now)
  if cell and cell.kind ~= limit.kind then
    local fit, again_at, used, whole_at, mark = limit.read(limit, nil, needed, now)
    return fit, again_at, used, whole_at, mark, DISCARDED
  end
  if cell and cell.holds then
    return read_held(limit, cell, needed, now)
  end
  return limit.read(limit, cell, needed, now)
end

-- Returns one encoded reading: flags (whether it fits, whether the same fits again, what was found)
-- and five numbers. Another flag means that two more numbers follow, unless both are zero.
local function reading(fit, again, again_at, used, whole_at, mark, given_back, found, held, added)
  local flags = fit + again * 4 + found * 16
  if held or added then
    local more = pack("<I7I7", held or 0, added or 0)
    return pack("<BI7I7I7I7I7", flags + 64, again_at, used, whole_at, mark, given_back) .. more
  end
  return pack("<BI7I7I7I7I7", flags, again_at, used, whole_at, mark, given_back)
end

-- Returns the reading of the limit, and whether `cost` fits.
local function look(limit, key, cost, now)
  local needed = cost > 0 and cost or 1
  local fit, again_at, used, whole_at, mark, found, held = assess(limit, cells[key], needed, now)
  return reading(fit, fit, again_at, used, whole_at, mark, 0, found, held)
end

-- Executes a charge if all limits of the job admit theirs; otherwise answers with its reading. If
-- `is_admitted` is nil, the charge is the whole job and is admitted if it fits.
local function take(limit, key, cost, id, now, is_admitted)
  local cell = cells[key]
  local needed = cost > 0 and cost or 1
  local fit, again_at, used, whole_at, mark, found, held = assess(limit, cell, needed, now)
  if is_admitted == nil then
    is_admitted = fit == FITS_NOW
  end
  if cost == 0 or not (is_admitted or limit.counts_refused) then
    return reading(fit, fit, again_at, used, whole_at, mark, 0, found, held)
  end
  if found == DISCARDED then
    cell = nil
  end
  cell = count(limit, cell, cost, id, now, is_admitted)
  cells[key] = cell
  change(key, limit, now)
  local again, _
  again, again_at, used, whole_at, mark, _, held = assess(limit, cell, needed, now)
  -- If the job was admitted, no charge refused, even if two of them are on the same key. If a
  -- charge fitted before it was counted itself, it was not the one that refused.
  if is_admitted then
    fit = FITS_NOW
  elseif fit ~= FITS_NOW then
    fit = again
  end
  return reading(fit, again, again_at, used, whole_at, mark, 0, found, held)
end

-- Returns whether the refund was already made.
local function is_repeated(ask, now)
  local guard = ask.guard and cells[ask.guard]
  return guard and guard.remembered_until and now < guard.remembered_until
end

-- Records a refund that must not be repeated. If no keys may be created, a refund that returned
-- nothing is not recorded.
local function remember(limit, ask, now, given_back)
  local is_over = not ask.guard or now >= ask.guarded_until
  if is_over or given_back == 0 and room == TIGHT then
    return
  end
  cells[ask.guard] = { kind = FOREIGN, remembered_until = ask.guarded_until }
  guards[#guards + 1] = { ask.guard, ask.guarded_until, now, limit.skew_max }
end

-- Refunds a charge. A cell that counts as missing has nothing to refund; only a charge replaces it.
local function refund(limit, ask, now)
  local key = ask.key
  local cell = cells[key]
  local fit, again_at, used, whole_at, mark, found, held = assess(limit, cell, 1, now)
  if is_repeated(ask, now) then
    return reading(fit, fit, again_at, used, whole_at, mark, 0, found, held)
  end
  local given_back, _ = 0, nil
  if cell and found ~= DISCARDED then
    cell = cell_as_of(limit, cell, now)
    given_back = limit.refund(limit, cell, ask.cost, ask.mark, ask.id, now)
    if given_back > 0 then
      cells[key] = cell
      change(key, limit, now)
      fit, again_at, used, whole_at, mark, _, held = assess(limit, cell, 1, now)
    end
  end
  remember(limit, ask, now, given_back)
  return reading(fit, fit, again_at, used, whole_at, mark, given_back, found, held)
end

-- Resets the limit: deletes the key with everything that was counted in it.
local function forget(limit, key, now)
  local _, _, _, _, _, found = assess(limit, cells[key], 1, now)
  if cells[key] then
    cells[key], counted[key], values[key] = nil, nil, FORGOTTEN
    change(key, limit, now)
  end
  local fit, again_at, used, whole_at, mark = assess(limit, nil, 1, now)
  return reading(fit, fit, again_at, used, whole_at, mark, 0, found)
end

-- Renews a permit. Only concurrency limits have permits.
local function renew(limit, ask, now)
  local key = ask.key
  local cell = cells[key]
  local renewed = false
  if limit.renew and cell and cell.kind == CONCURRENCY then
    renewed = limit.renew(limit, cell, ask.id, now)
    if renewed then
      change(key, limit, now)
    end
  end
  local again, again_at, used, whole_at, mark, found, held = assess(limit, cell, 1, now)
  local fit = renewed and FITS_NOW or FITS_NEVER
  return reading(fit, again, again_at, used, whole_at, mark, 0, found, held)
end
