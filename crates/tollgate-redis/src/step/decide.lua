-- One ask on one limit for one subject. `call` holds the cells of the whole command by their keys'
-- indexes; nothing is written here.

local ALGORITHMS = {
  fixed_window, sliding_window, two_bucket, sliding_log, token_bucket, concurrency,
}

-- Marks the cell of `key` as changed, for the end of the command.
local function change(call, key, limit, now)
  local changed = call.changes[key]
  if not changed then
    changed = {}
    call.changes[key] = changed
    call.changed[#call.changed + 1] = key
  end
  changed.limit, changed.now = limit, now
end

-- How the limit stands. A cell of another kind counts as none, and is told as discarded.
local function assess(limit, cell, needed, now)
  if cell and cell.kind ~= limit.kind then
    local fit, again_at, used, whole_at, mark = limit.read(limit, nil, needed, now)
    return fit, again_at, used, whole_at, mark, DISCARDED
  end
  return limit.read(limit, cell, needed, now)
end

-- One reading: flags (the fit, whether the same fits again, what was found) and five numbers.
local function reading(fit, again, again_at, used, whole_at, mark, given_back, found)
  return pack("<BI7I7I7I7I7", fit + again * 4 + found * 16, again_at, used, whole_at, mark, given_back)
end

-- Carries a take out that all limits of the job admit, or answers one that not all of them do.
local function take(call, limit, ask, now, admitted)
  local key, cost = ask.key, ask.cost
  local cell = call.cells[key]
  local needed = cost > 0 and cost or 1
  local fit, again_at, used, whole_at, mark, found = assess(limit, cell, needed, now)
  if cost == 0 or not (admitted or limit.counts_refused) then
    return reading(fit, fit, again_at, used, whole_at, mark, 0, found)
  end
  if found == DISCARDED then
    cell = nil
  end
  cell = limit.take(limit, cell, cost, ask.id, now)
  call.cells[key] = cell
  change(call, key, limit, now)
  local again
  again, again_at, used, whole_at, mark = limit.read(limit, cell, needed, now)
  -- What fitted before its own counting was not what refused.
  if fit ~= FITS_NOW then
    fit = again
  end
  return reading(fit, again, again_at, used, whole_at, mark, 0, found)
end

-- Whether a refund came before; remembers it if it did not. Where there is no room for keys, what
-- gives nothing back is not remembered.
local function is_repeated(call, ask, now)
  local guard = ask.guard and call.cells[ask.guard]
  return guard and guard.remembered_until and now < guard.remembered_until
end

local function remember(call, limit, ask, now, given_back)
  local is_over = not ask.guard or now >= ask.guarded_until
  if is_over or given_back == 0 and call.room == TIGHT then
    return
  end
  call.cells[ask.guard] = { kind = FOREIGN, remembered_until = ask.guarded_until }
  call.guards[#call.guards + 1] = { ask.guard, ask.guarded_until, now, limit.skew_max }
end

-- Gives back. What counts as none has nothing to give back, and is replaced by a take alone.
local function refund(call, limit, ask, now)
  local key = ask.key
  local cell = call.cells[key]
  local fit, again_at, used, whole_at, mark, found = assess(limit, cell, 1, now)
  if is_repeated(call, ask, now) then
    return reading(fit, fit, again_at, used, whole_at, mark, 0, found)
  end
  local given_back = 0
  if cell and found ~= DISCARDED then
    given_back = limit.refund(limit, cell, ask.cost, ask.mark, ask.id, now)
    if given_back > 0 then
      change(call, key, limit, now)
      fit, again_at, used, whole_at, mark = limit.read(limit, cell, 1, now)
    end
  end
  remember(call, limit, ask, now, given_back)
  return reading(fit, fit, again_at, used, whole_at, mark, given_back, found)
end

-- Puts a lease off. Nothing but a concurrency limit has leases.
local function renew(call, limit, ask, now)
  local key = ask.key
  local cell = call.cells[key]
  local renewed = false
  if limit.kind == CONCURRENCY and cell and cell.kind == CONCURRENCY then
    renewed = limit.renew(limit, cell, ask.id, now)
    if renewed then
      change(call, key, limit, now)
    end
  end
  local again, again_at, used, whole_at, mark, found = assess(limit, cell, 1, now)
  local fit = renewed and FITS_NOW or FITS_NEVER
  return reading(fit, again, again_at, used, whole_at, mark, 0, found)
end
