-- Fixed window. A cell has `used` and `resets_at`. A limit's `extra` is 0 if windows open with the
-- first charge, 1 if they are aligned to multiples of their length, and otherwise the end of the
-- current window of a schedule, whose windows are no longer than `window`.

local function fixed_window_algorithm()
  local fixed_window = {}

  -- Returns the current window, or the one that a charge would open.
  local function open_window(limit, cell, now)
    local found = NOTHING
    if cell then
      local resets_at = cell.resets_at
      if now < resets_at then
        if resets_at - limit.window <= after(now, limit.skew_max) then
          return cell.used, resets_at, STATE
        end
        found = DISCARDED
      end
    end
    local window = limit.window
    if limit.extra == 0 then
      return 0, after(now, window), found
    end
    if limit.extra > 1 then
      return 0, limit.extra, found
    end
    return 0, after((floor(now / window) + 1) * window, 0), found
  end

  function fixed_window.read(limit, cell, needed, now)
    local used, resets_at, found = open_window(limit, cell, now)
    local fit = FITS_NOW
    if needed > limit.quota then
      fit = FITS_NEVER
    elseif needed > limit.quota - used then
      fit = FITS_AT
    end
    return fit, resets_at, used, resets_at, resets_at, found
  end

  function fixed_window.take(limit, cell, cost, _, now)
    local used, resets_at, found = open_window(limit, cell, now)
    if found ~= STATE then
      cell = { kind = FIXED_WINDOW, resets_at = resets_at }
    end
    cell.used = after(used, cost)
    return cell
  end

  function fixed_window.refund(limit, cell, cost, mark, _, now)
    local used, resets_at, found = open_window(limit, cell, now)
    if found ~= STATE or resets_at ~= mark then
      return 0
    end
    if cost > used then
      cost = used
    end
    cell.used = used - cost
    return cost
  end

  -- If two windows overlap, the one that opened first is the one that its client received. No
  -- window of a schedule is shorter than half of the longest one.
  function fixed_window.join(limit, one, other)
    local first, last = one, other
    if other.resets_at < one.resets_at then
      first, last = other, one
    end
    local shortest = limit.extra > 1 and div_ceil(limit.window, 2) or limit.window
    if last.resets_at - shortest >= first.resets_at then
      return last
    end
    if last.used > first.used then
      first.used = last.used
    end
    return first
  end

  function fixed_window.over_at(_, cell)
    return cell.resets_at
  end

  return fixed_window
end
