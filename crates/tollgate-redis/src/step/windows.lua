-- Takes from fixed windows that are open and lie as nineteen digits, which is what most takes are.
-- Nothing but the units counted in each is kept of them.

-- The first and the last reset of a window in force that has nineteen digits.
local function resets_in_force(limit, now)
  local first, last = now + 1, after(now, limit.skew_max) + limit.window
  first = first > FIRST_LONG_RESET and first or FIRST_LONG_RESET
  return first, last < LATEST_PACKED_RESET and last or LATEST_PACKED_RESET
end

-- What is used of such a window, of which the command counted `units`; nil if `key` holds none.
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

-- The window as the command found it, behind a plus and the units that it counted there since.
local function window_text(key)
  local units = counted[key]
  return units and "+" .. pack("<I7", units) .. values[key] or values[key]
end

-- The answer to `jobs` takes that are each alone in their job; nil if they need more than that.
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

-- Appends the answer to a job that takes from a window by each of `asks`, all of different keys.
-- Answers how many answers there are then; nil if it needs more than that.
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
