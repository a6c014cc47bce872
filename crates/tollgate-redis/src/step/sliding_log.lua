-- Sliding log. A cell is a series of times.

local function sliding_log_algorithm()
  local sliding_log = {}

  -- Returns the index of the first entry that counts, the time of the decision, and what was found.
  local function counted_entries(limit, cell, now)
    if not cell then
      return 1, now, NOTHING
    end
    local list = cell.list
    local newest = list[#list - 1]
    if newest > after(now, limit.skew_max) then
      return #list + 1, now, DISCARDED
    end
    if newest > now then
      now = newest
    end
    local first = cell.first
    while first < #list and after(list[first], limit.window) <= now do
      first = first + 2
    end
    return first, now, first < #list and STATE or NOTHING
  end

  function sliding_log.read(limit, cell, needed, now)
    local first, at, found = counted_entries(limit, cell, now)
    local list = cell and cell.list or {}
    local newest = newest_used(list, first)
    local fit, blocking, used = weigh(list, first, limit.quota, needed)
    local again_at = blocking and after(blocking, limit.window) or 0
    local whole_at = newest and after(newest, limit.window) or now
    return fit, again_at, used, whole_at, at, found
  end

  -- Adds a charge. If the list becomes too long for a key, its two oldest entries become one, at
  -- the later of their times. The newer entries alone then fill every quota, so no unit expires too
  -- early.
  local function add_entry(cell, at, cost)
    add_to_series(cell, at, cost)
    local list, first = cell.list, cell.first
    if #list - first + 1 > 2 * MAX_RECORDS then
      list[first + 3] = after(list[first + 3], list[first + 1])
      cell.first = first + 2
    end
    return cell
  end

  function sliding_log.take(limit, cell, cost, _, now)
    local first, at = counted_entries(limit, cell, now)
    cell = cell or { kind = SLIDING_LOG, list = {} }
    cell.first = first
    return add_entry(cell, at, cost)
  end

  -- A refused charge fills the log at most to the quota. Once the quota is full, each further unit
  -- replaces the oldest of the newest units that fill the quota. The log of a client that keeps
  -- retrying therefore does not grow.
  function sliding_log.take_refused(limit, cell, cost, _, now)
    local first, at = counted_entries(limit, cell, now)
    cell = cell or { kind = SLIDING_LOG, list = {} }
    cost = cost < limit.quota and cost or limit.quota
    cell.first = first
    remove_from_series(cell, limit.quota - cost, cost)
    return add_entry(cell, at, cost)
  end

  function sliding_log.refund(limit, cell, cost, mark, _, now)
    local first = counted_entries(limit, cell, now)
    return refund_to_series(cell, first, mark, cost)
  end

  sliding_log.join = join_series

  function sliding_log.over_at(limit, cell)
    return after(cell.list[#cell.list - 1], limit.window)
  end

  return sliding_log
end
