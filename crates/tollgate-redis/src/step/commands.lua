-- Executes the jobs of a command, one after the other.

-- The unpack formats of the charges of a job after the first one, by their number.
local ASK_FORMS = {}
local MAX_ASKS_KNOWN = 16

-- Returns the charges of a job as limit, key and cost in turn, and the position after them.
local function parse_takes(bytes, position, limits, key_count, count, limit, key, cost)
  check(count >= 1 and count <= MAX_ASKS_KNOWN, "asks")
  local form = ASK_FORMS[count]
  if not form then
    form = "<" .. rep("I4I4I7", count - 1)
    ASK_FORMS[count] = form
  end
  local asks = { limit, key, cost, unpack_bytes(form, bytes, position) }
  for index = 4, #asks - 1, 3 do
    local limit, key, cost = limits[asks[index]], asks[index + 1], asks[index + 2]
    check(limit and key >= 1 and key <= key_count and cost <= MAX, "limit, key or cost")
    asks[index] = limit
  end
  position = asks[#asks]
  asks[#asks] = nil
  return asks, position
end

local function decide_takes(takes, now)
  local asks = {}
  for index = 1, #takes, 3 do
    local limit, key, cost = takes[index], takes[index + 1], takes[index + 2]
    check(limit.kind ~= CONCURRENCY, "lease")
    open_cell(key)
    asks[#asks + 1] = { op = TAKE, limit = limit, key = key, cost = cost }
  end
  return decide_job(asks, now)
end

-- Executes the jobs from `position` on and appends their answers.
local function decide_jobs(bytes, position, limits, key_count, answers)
  local size, answered = #bytes, #answers
  while position <= size do
    local now, count, op, limit, key, cost
    now, count, op, limit, key, cost, position = unpack_bytes("<I7I4BI4I4I7", bytes, position)
    limit = limits[limit]
    if not limit or key < 1 or key > key_count or cost > MAX or now > MAX then
      error("tollgate: limit, key, cost or now")
    end
    if op == TAKE_EACH then
      check(key + count - 1 <= key_count and limit.kind ~= CONCURRENCY, "run")
      answered = take_each(limit, key, key + count - 1, cost, now, answers, answered)
    elseif op == TAKE_REPEATEDLY then
      check(limit.kind ~= CONCURRENCY, "run")
      answered = take_repeatedly(limit, key, cost, now, count, answers, answered)
    elseif op == TAKE_ALL then
      local asks
      asks, position = parse_takes(bytes, position, limits, key_count, count, limit, key, cost)
      local all = take_from_windows(asks, now, answers, answered)
      if not all then
        all = answered + 1
        answers[all] = decide_takes(asks, now)
      end
      answered = all
    else
      local asks = {}
      asks[1], position = parse_ask(bytes, position, op, limit, key, cost, key_count)
      for index = 2, count do
        op, limit, key, cost, position = unpack_bytes("<BI4I4I7", bytes, position)
        limit = limits[limit]
        check(limit and key >= 1 and key <= key_count and cost <= MAX, "limit, key or cost")
        asks[index], position = parse_ask(bytes, position, op, limit, key, cost, key_count)
      end
      answered = answered + 1
      answers[answered] = decide_job(asks, now)
    end
  end
end
