-- Sliding window. A cell is a series of block numbers.

local function sliding_window_algorithm()
  local sliding_window = {}

  local function leaves_at(limit, block)
    return after((block + limit.blocks) * limit.extra, 0)
  end

  -- Returns the index of the first block that counts, the number of the current block, and what was
  -- found.
  local function counted_blocks(limit, cell, now)
    local precision = limit.extra
    local head = floor(now / precision)
    if not cell then
      return 1, head, NOTHING
    end
    local list = cell.list
    local newest = list[#list - 1]
    local starts = newest * precision
    if starts > MAX or starts > after(now, limit.skew_max) then
      return #list + 1, head, DISCARDED
    end
    if newest > head then
      head = newest
    end
    local first = cell.first
    while first < #list and list[first] + limit.blocks <= head do
      first = first + 2
    end
    return first, head, first < #list and STATE or NOTHING
  end

  function sliding_window.read(limit, cell, needed, now)
    local first, head, found = counted_blocks(limit, cell, now)
    local list = cell and cell.list or {}
    local newest = newest_used(list, first)
    local fit, blocking, used = weigh(list, first, limit.quota, needed)
    local again_at = blocking and leaves_at(limit, blocking) or 0
    local whole_at = newest and leaves_at(limit, newest) or now
    return fit, again_at, used, whole_at, head, found
  end

  function sliding_window.take(limit, cell, cost, _, now)
    local first, head = counted_blocks(limit, cell, now)
    cell = cell or { kind = SLIDING_WINDOW, list = {} }
    cell.first = first
    add_to_series(cell, head, cost)
    return cell
  end

  function sliding_window.refund(limit, cell, cost, mark, _, now)
    local first = counted_blocks(limit, cell, now)
    return refund_to_series(cell, first, mark, cost)
  end

  sliding_window.join = join_series

  function sliding_window.over_at(limit, cell)
    return leaves_at(limit, cell.list[#cell.list - 1])
  end

  return sliding_window
end
