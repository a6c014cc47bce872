-- Token bucket. A cell has `level`, in units of 1/window token, and `at`.

local function token_bucket_algorithm()
  local token_bucket = {}

  -- Returns the current level, its time, and what was found.
  local function level_now(limit, cell, now)
    local full = limit.full
    if not cell then
      return full, now, NOTHING
    end
    local at, level = cell.at, cell.level
    if at > after(now, limit.skew_max) then
      return full, now, DISCARDED
    end
    if now < at then
      now = at
    end
    -- With another burst of the limit, the bucket can have more tokens than this burst. It is full.
    local elapsed = now - at
    if elapsed >= div_ceil(full - level, limit.quota) then
      return full, now, NOTHING
    end
    return level + elapsed * limit.quota, now, STATE
  end

  function token_bucket.read(limit, cell, needed, now)
    local level, at, found = level_now(limit, cell, now)
    local window, quota, burst = limit.window, limit.quota, limit.extra
    local tokens = floor(level / window)
    local missing = limit.full - level
    local fit, again_at = FITS_NOW, 0
    if needed > burst then
      fit = FITS_NEVER
    elseif needed > tokens then
      fit, again_at = FITS_AT, after(at, div_ceil(needed * window - level, quota))
    end
    local whole_at = after(at, div_ceil(missing, quota))
    return fit, again_at, burst - tokens, whole_at, after(at, floor(missing / quota)), found
  end

  -- A refused charge that counts takes the rest, because a bucket has no debts.
  function token_bucket.take(limit, cell, cost, _, now)
    local level, at = level_now(limit, cell, now)
    cell = cell or { kind = TOKEN_BUCKET }
    local taken = (cost < limit.extra and cost or limit.extra) * limit.window
    cell.level = taken < level and level - taken or 0
    cell.at = at
    return cell
  end

  -- Refunds the tokens that were not refilled in the meantime.
  function token_bucket.refund(limit, cell, cost, mark, _, now)
    local level, at = level_now(limit, cell, now)
    local full_at = mark < MAX and mark or MAX
    local given = 0
    if full_at > at then
      local owed = (full_at - at) * limit.quota
      local missing = limit.full - level
      given = (cost < limit.extra and cost or limit.extra) * limit.window
      if owed < given then
        given = owed
      end
      if missing < given then
        given = missing
      end
    end
    if given > 0 then
      cell.level, cell.at = level + given, at
    end
    return div_ceil(given, limit.window)
  end

  -- Keeps the lower level, as of the later time.
  function token_bucket.join(limit, one, other)
    local at = one.at > other.at and one.at or other.at
    local level, others = level_now(limit, one, at), level_now(limit, other, at)
    return { kind = TOKEN_BUCKET, level = level < others and level or others, at = at }
  end

  function token_bucket.over_at(limit, cell)
    local missing = limit.full - cell.level
    return after(cell.at, missing > 0 and div_ceil(missing, limit.quota) or 0)
  end

  return token_bucket
end
