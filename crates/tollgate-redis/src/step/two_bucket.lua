-- Sliding window, two-bucket estimate. A cell has `bucket`, `previous` and `current`.

local function two_bucket_algorithm()
  local two_bucket = {}

  -- Returns the current buckets, the milliseconds since the current one began, and what was found.
  local function rolled(limit, cell, now)
    local window = limit.window
    local bucket = floor(now / window)
    if not cell then
      return bucket, 0, 0, now % window, NOTHING
    end
    local starts = cell.bucket * window
    if starts > MAX or starts > after(now, limit.skew_max) then
      return bucket, 0, 0, now % window, DISCARDED
    end
    -- Another quota of the limit can have counted more than this quota. No quota exceeds the largest
    -- one, with which the products are exact.
    local most, previous, current = limit.largest_quota, cell.previous, cell.current
    previous = previous < most and previous or most
    current = current < most and current or most
    if cell.bucket >= bucket then
      local elapsed = now > starts and now - starts or 0
      return cell.bucket, previous, current, elapsed, STATE
    end
    if cell.bucket + 1 == bucket then
      return bucket, current, 0, now % window, current > 0 and STATE or NOTHING
    end
    return bucket, 0, 0, now % window, NOTHING
  end

  -- Returns when `needed` fits, if it does not fit now: during this bucket or the next.
  local function estimate_falls_at(limit, bucket, previous, current, needed)
    local window = limit.window
    local free = limit.quota - needed
    local fading, staying = previous, current
    if current > free then
      bucket, fading, staying = bucket + 1, current, 0
    end
    local elapsed = 0
    if fading > 0 then
      local left = floor((free - staying) * window / fading)
      if left < window then
        elapsed = window - left
      end
    end
    return after(bucket * window + elapsed, 0)
  end

  function two_bucket.read(limit, cell, needed, now)
    local bucket, previous, current, elapsed, found = rolled(limit, cell, now)
    local window, quota = limit.window, limit.quota
    local weight = previous * (window - elapsed) + current * window
    local free = quota * window - weight
    local fit, again_at = FITS_NOW, 0
    if needed > quota then
      fit = FITS_NEVER
    elseif free < 0 or needed > floor(free / window) then
      fit, again_at = FITS_AT, estimate_falls_at(limit, bucket, previous, current, needed)
    end
    local whole_at = now
    if current > 0 then
      whole_at = after((bucket + 2) * window, 0)
    elseif previous > 0 then
      whole_at = after((bucket + 1) * window, 0)
    end
    return fit, again_at, div_ceil(weight, window), whole_at, bucket, found
  end

  function two_bucket.take(limit, cell, cost, _, now)
    local bucket, previous, current = rolled(limit, cell, now)
    local most = limit.largest_quota
    cell = cell or { kind = TWO_BUCKET }
    cell.bucket, cell.previous = bucket, previous
    cell.current = current + cost < most and current + cost or most
    return cell
  end

  -- A refused charge fills the bucket at most to the quota. Another quota of the limit can have
  -- counted more units, which stay.
  function two_bucket.take_refused(limit, cell, cost, _, now)
    local bucket, previous, current = rolled(limit, cell, now)
    local filled = current + cost < limit.quota and current + cost or limit.quota
    cell = cell or { kind = TWO_BUCKET }
    cell.bucket, cell.previous = bucket, previous
    cell.current = filled > current and filled or current
    return cell
  end

  function two_bucket.refund(limit, cell, cost, mark, _, now)
    local bucket = rolled(limit, cell, now)
    local name = nil
    if bucket - mark < 2 then
      name = mark == cell.bucket and "current" or mark + 1 == cell.bucket and "previous"
    end
    if not name then
      return 0
    end
    if cost > cell[name] then
      cost = cell[name]
    end
    cell[name] = cell[name] - cost
    return cost
  end

  local function used_in(cell, bucket)
    if bucket == cell.bucket then
      return cell.current
    end
    return bucket + 1 == cell.bucket and cell.previous or 0
  end

  local function most_used_in(one, other, bucket)
    local its, others = used_in(one, bucket), used_in(other, bucket)
    return its > others and its or others
  end

  function two_bucket.join(_, one, other)
    local bucket = one.bucket > other.bucket and one.bucket or other.bucket
    return {
      kind = TWO_BUCKET, bucket = bucket,
      previous = bucket > 0 and most_used_in(one, other, bucket - 1) or 0,
      current = most_used_in(one, other, bucket),
    }
  end

  function two_bucket.over_at(limit, cell)
    local last = cell.current > 0 and cell.bucket + 2 or cell.bucket + 1
    return after(last * limit.window, 0)
  end

  return two_bucket
end
