-- The jobs of a command, decided one after the other, each all or nothing.

local TAKE, TAKE_LEASE, REFUND, REFUND_GUARDED, REFUND_LEASE, RENEW, LOOK = 1, 2, 3, 4, 5, 6, 7

-- The rest of an ask after its operation, limit, key and cost; and the position after it.
local function parse_ask(bytes, position, op, limit, key, cost, key_count)
  local ask = { op = op, limit = limit, key = key, cost = cost }
  if op == TAKE_LEASE or op == REFUND_LEASE or op == RENEW then
    ask.id, position = unpack_bytes("<c16", bytes, position)
  elseif op == REFUND then
    ask.mark, position = unpack_bytes("<I7", bytes, position)
  elseif op == REFUND_GUARDED then
    ask.mark, ask.guard, ask.guarded_until, position = unpack_bytes("<I7I4I7", bytes, position)
    check(ask.guard >= 1 and ask.guard <= key_count, "guard")
    check(ask.guarded_until <= MAX, "end of the guard")
  else
    check(op == TAKE or op == LOOK, "no such ask")
  end
  check((ask.id ~= nil) == (limit.kind == CONCURRENCY and op ~= LOOK or op == RENEW), "lease")
  return ask, position
end

local function is_admitted_by_all(asks, now)
  for index = 1, #asks do
    local ask = asks[index]
    if ask.op <= TAKE_LEASE then
      local needed = ask.cost > 0 and ask.cost or 1
      if assess(ask.limit, cells[ask.key], needed, now) ~= FITS_NOW then
        return false
      end
    end
  end
  return true
end

-- Whether a take of the job would make a key.
local function needs_key(asks, is_admitted)
  for index = 1, #asks do
    local ask = asks[index]
    local is_counted = is_admitted or ask.limit.counts_refused
    if ask.op <= TAKE_LEASE and ask.cost > 0 and is_counted and not cells[ask.key] then
      return true
    end
  end
  return false
end

-- The answer to one job.
local function decide_job(asks, now)
  local is_admitted = is_admitted_by_all(asks, now)
  if room == TIGHT and needs_key(asks, is_admitted) then
    return "\1"
  end
  local readings = { "\0" }
  for index = 1, #asks do
    local ask = asks[index]
    local limit, op = ask.limit, ask.op
    if op <= TAKE_LEASE then
      readings[index + 1] = take(limit, ask.key, ask.cost, ask.id, now, is_admitted)
    elseif op == LOOK then
      readings[index + 1] = look(limit, ask.key, ask.cost, now)
    elseif op == RENEW then
      readings[index + 1] = renew(limit, ask, now)
    else
      readings[index + 1] = refund(limit, ask, now)
    end
  end
  return table.concat(readings)
end

-- Decides the jobs from `position` on and appends their answers.
local function decide_jobs(bytes, position, limits, key_count, answers)
  local size, answered = #bytes, #answers
  while position <= size do
    local now, count, op, limit, key, cost
    now, count, op, limit, key, cost, position = unpack_bytes("<I7I4BI4I4I7", bytes, position)
    limit = limits[limit]
    if not limit or key < 1 or key > key_count or cost > MAX or now > MAX then
      error("tollgate: limit, key, cost or now")
    end
    local answer = nil
    if count == 1 and op == TAKE and room ~= TIGHT and limit.kind ~= CONCURRENCY then
      answer = cost > 0 and limit.kind == FIXED_WINDOW and take_in_open_window(limit, key, cost, now)
        or "\0" .. take(limit, key, cost, nil, now, nil)
    elseif count == 1 and op == LOOK then
      answer = "\0" .. look(limit, key, cost, now)
    else
      local asks = {}
      asks[1], position = parse_ask(bytes, position, op, limit, key, cost, key_count)
      for index = 2, count do
        op, limit, key, cost, position = unpack_bytes("<BI4I4I7", bytes, position)
        limit = limits[limit]
        check(limit and key >= 1 and key <= key_count and cost <= MAX, "limit, key or cost")
        asks[index], position = parse_ask(bytes, position, op, limit, key, cost, key_count)
      end
      answer = decide_job(asks, now)
    end
    answered = answered + 1
    answers[answered] = answer
  end
end
