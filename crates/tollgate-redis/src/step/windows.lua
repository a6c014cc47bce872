-- Charges on open fixed windows that are stored as nineteen digits, the most common case. Only the
-- units counted in each of them are kept.

-- Returns the first and the last valid reset of a current window with nineteen digits.
local function resets_in_force(limit, now)
  local first, last = now + 1, after(now, limit.skew_max) + limit.window
  first = first > FIRST_LONG_RESET and first or FIRST_LONG_RESET
  return first, last < LATEST_PACKED_RESET and last or LATEST_PACKED_RESET
end

-- Returns the used units of such a window, including the units that the command has counted; nil if
-- `key` has no such window.
local function used_of_window(limit, key, now)
  local bytes = values[key]
  if limit.kind ~= FIXED_WINDOW or room == TIGHT or not bytes or #bytes ~= 19 or cells[key] then
    return nil
  end
  local first, last = resets_in_force(limit, now)
  local resets_at, used = read_digits(bytes)
  if resets_at < first or resets_at > last or used > LARGEST_PACKED_USED then
    return nil
  end
  return used + (counted[key] or 0)
end

local function count_in_window(key, cost)
  counted[key] = (counted[key] or 0) + cost
  last_opened = key > last_opened and key or last_opened
end

-- Returns the window as the command read it, after a plus sign and the units that the command has
-- counted since.
local function window_text(key)
  local units = counted[key]
  return units and "+" .. pack("<I7", units) .. values[key] or values[key]
end

-- Returns the answer to `jobs` charges that are each the only one in their job; nil if this case
-- does not apply.
local function take_repeatedly_from_window(limit, key, cost, now, jobs)
  local used = used_of_window(limit, key, now)
  if not used or cost == 0 then
    return nil
  end
  local free, admitted = limit.quota - used, 0
  if free >= cost then
    admitted = free < cost * jobs and floor(free / cost) or jobs
  end
  local is_short = admitted < jobs and limit.counts_refused
  if is_short or used + cost * admitted > LARGEST_PACKED_USED then
    return nil
  end
  local answer = REPEATED .. pack("<I7I7", jobs, admitted) .. window_text(key)
  if admitted > 0 then
    count_in_window(key, cost * admitted)
  end
  return answer
end

-- Appends the answer to a job with one charge on each window of `asks`, all with different keys.
-- Returns the new number of answers; nil if this case does not apply.
local function take_from_windows(asks, now, answers, answered)
  local is_admitted = true
  for index = 1, #asks, 3 do
    local limit, key, cost = asks[index], asks[index + 1], asks[index + 2]
    local used = used_of_window(limit, key, now)
    if not used or limit.counts_refused or used + cost > LARGEST_PACKED_USED then
      return nil
    end
    is_admitted = is_admitted and cost <= limit.quota - used
  end
  if not is_admitted then
    answered = answered + 1
    answers[answered] = REFUSED
  end
  for index = 1, #asks, 3 do
    local key = asks[index + 1]
    answered = answered + 1
    answers[answered] = window_text(key)
    if is_admitted then
      count_in_window(key, asks[index + 2])
    end
  end
  return answered
end
