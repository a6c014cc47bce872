-- Concurrency. A cell has `list`: a flat array of permits (id, units, expiry), sorted by expiry.

local function concurrency_algorithm()
  local concurrency = {}

  -- Returns the latest expiry of a permit that a node with a correct clock can have granted.
  local function latest_end(limit, now)
    return after(after(now, limit.window), limit.skew_max)
  end

  -- Returns the time of the decision, which is never before a permit was granted or renewed. With a
  -- clock that lags, a permit would expire early and a renewal would shorten it.
  local function moment(limit, list, now)
    local latest = latest_end(limit, now)
    for index = #list, 3, -3 do
      if list[index] <= latest then
        local granted_at = list[index] - limit.window
        return granted_at > now and granted_at or now
      end
    end
    return now
  end

  -- Returns the units of the permit of `id`, or nil if there is none.
  local function units_of(limit, list, id, now)
    local latest = latest_end(limit, now)
    for index = 1, #list, 3 do
      if list[index] == id and now < list[index + 2] and list[index + 2] <= latest then
        return list[index + 1]
      end
    end
    return nil
  end

  -- Removes the permit of `id`, and expired permits.
  local function prune(limit, list, now, id)
    local latest, kept, size = latest_end(limit, now), 0, #list
    for index = 1, size, 3 do
      local ends = list[index + 2]
      if now < ends and ends <= latest and list[index] ~= id then
        list[kept + 1], list[kept + 2], list[kept + 3] = list[index], list[index + 1], ends
        kept = kept + 3
      end
    end
    for index = size, kept + 1, -1 do
      list[index] = nil
    end
  end

  -- Inserts a permit in the order of expiry: at the back, unless the limit's permit time was
  -- shortened.
  local function insert_lease(list, id, units, ends)
    local index = #list
    while index > 0 and list[index] > ends do
      list[index + 1], list[index + 2], list[index + 3] = list[index - 2], list[index - 1], list[index]
      index = index - 3
    end
    list[index + 1], list[index + 2], list[index + 3] = id, units, ends
  end

  -- Returns the permits that were not joined, sorted by expiry; equal ones keep their order.
  local function by_end(leases)
    table.sort(leases, function(one, other)
      return one.ends < other.ends or one.ends == other.ends and one.place < other.place
    end)
    local list = {}
    for _, lease in ipairs(leases) do
      if not lease.is_joined then
        local size = #list
        list[size + 1], list[size + 2], list[size + 3] = lease.id, lease.units, lease.ends
      end
    end
    return list
  end

  function concurrency.read(limit, cell, needed, now)
    local list, asked_at = cell and cell.list or {}, now
    now = moment(limit, list, now)
    local latest, free = latest_end(limit, now), limit.quota - needed
    local used, staying, again_at, whole_at, impossible = 0, 0, nil, asked_at, false
    for index = #list, 3, -3 do
      local ends, units = list[index], list[index - 1]
      if ends > latest then
        impossible = true
      elseif now < ends then
        if used == 0 then
          whole_at = ends
        end
        used = after(used, units)
        if not again_at then
          if staying + units <= free then
            staying = staying + units
          else
            again_at = ends
          end
        end
      end
    end
    local found = used > 0 and STATE or impossible and DISCARDED or NOTHING
    local fit = free < 0 and FITS_NEVER or again_at and FITS_AT or FITS_NOW
    return fit, again_at or 0, used, whole_at, 0, found
  end

  -- A charge with the id of a permit is a repetition of the same request and adds no permit.
  function concurrency.take(limit, cell, cost, id, now)
    cell = cell or { kind = CONCURRENCY, list = {} }
    now = moment(limit, cell.list, now)
    prune(limit, cell.list, now, id)
    insert_lease(cell.list, id, cost, after(now, limit.window))
    return cell
  end

  function concurrency.refund(limit, cell, _, _, id, now)
    now = moment(limit, cell.list, now)
    local units = units_of(limit, cell.list, id, now)
    if not units then
      return 0
    end
    prune(limit, cell.list, now, id)
    return units
  end

  -- Extends the permit of `id` by one permit time from now. Returns whether it existed.
  function concurrency.renew(limit, cell, id, now)
    now = moment(limit, cell.list, now)
    local units = units_of(limit, cell.list, id, now)
    if not units then
      return false
    end
    prune(limit, cell.list, now, id)
    insert_lease(cell.list, id, units, after(now, limit.window))
    return true
  end

  -- Keeps every permit of either cell, until the later of its two expiries.
  function concurrency.join(_, one, other)
    local leases, by_id = {}, {}
    for _, list in ipairs({ one.list, other.list }) do
      for index = 1, #list, 3 do
        local id, units, ends = list[index], list[index + 1], list[index + 2]
        local known = by_id[id]
        if known then
          units = units > known.units and units or known.units
          ends = ends > known.ends and ends or known.ends
          known.is_joined = true
        end
        by_id[id] = { id = id, units = units, ends = ends, place = #leases + 1 }
        leases[#leases + 1] = by_id[id]
      end
    end
    return { kind = CONCURRENCY, list = by_end(leases) }
  end

  function concurrency.over_at(_, cell)
    return cell.list[#cell.list]
  end

  return concurrency
end
