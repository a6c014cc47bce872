-- The step: reads every key of a command at once, decides its jobs one after the other, each all
-- or nothing, and writes what changed at the end. Until then an error leaves everything as it was.
--
-- KEYS: the keys, each once. ARGV[1]: the command, in little-endian bytes:
--   room (0: new keys are fine, 1: none), deadline in ms on this server's clock (0: none),
--   the number of limits, the limits, the jobs.
-- The answer, in the same form: 1 if the deadline had passed, else 0; this server's clock in ms
-- (0: was not asked); for each job 1 if it needed a key and there is no room, else 0 and readings.

local TAKE, TAKE_LEASE, REFUND, REFUND_GUARDED, REFUND_LEASE, RENEW = 1, 2, 3, 4, 5, 6
local LIMIT_BYTES = 30

local function check(is_right, what)
  if not is_right then
    error("tollgate: " .. what)
  end
end

-- The limit at `position`, each number checked.
local function parse_limit(bytes, position)
  local kind, refusals, quota, window, extra, skew_max =
    unpack_bytes("<BBI7I7I7I7", bytes, position)
  local algorithm = ALGORITHMS[kind]
  check(algorithm, "no such algorithm")
  check(quota >= 1 and quota <= MAX and window >= 1 and window <= MAX, "quota or window")
  check(extra <= MAX and skew_max <= MAX, "precision, burst or skew")
  local limit = {
    kind = kind, counts_refused = refusals == 1,
    quota = quota, window = window, extra = extra, skew_max = skew_max,
    read = algorithm.read, take = algorithm.take, refund = algorithm.refund,
    renew = algorithm.renew, over_at = algorithm.over_at,
  }
  if kind == SLIDING_WINDOW then
    check(extra >= 1, "precision")
    limit.blocks = div_ceil(window, extra)
  elseif kind == TOKEN_BUCKET then
    check(extra >= 1 and extra * window <= MAX, "burst")
    limit.full = extra * window
  end
  return limit
end

-- The ask at `position` and the position after it.
local function parse_ask(call, bytes, position)
  local op, limit, key, cost
  op, limit, key, cost, position = unpack_bytes("<BI4I4I7", bytes, position)
  local ask = { op = op, limit = call.limits[limit], key = key, cost = cost }
  check(ask.limit and key >= 1 and key <= call.keys and cost <= MAX, "limit, key or cost")
  if op == TAKE_LEASE or op == REFUND_LEASE or op == RENEW then
    ask.id, position = unpack_bytes("<c16", bytes, position)
  elseif op == REFUND then
    ask.mark, position = unpack_bytes("<I7", bytes, position)
  elseif op == REFUND_GUARDED then
    ask.mark, ask.guard, ask.guarded_until, position = unpack_bytes("<I7I4I7", bytes, position)
    check(ask.guard >= 1 and ask.guard <= call.keys, "guard")
    check(ask.guarded_until <= MAX, "end of the guard")
  else
    check(op == TAKE, "no such ask")
  end
  check((ask.id ~= nil) == (ask.limit.kind == CONCURRENCY or op == RENEW), "lease")
  return ask, position
end

-- Decides one job: its readings, or nil if it needs a key and there is no room.
local function decide_job(call, asks, now)
  local admitted = true
  for index = 1, #asks do
    local ask = asks[index]
    if ask.op <= TAKE_LEASE and admitted then
      local needed = ask.cost > 0 and ask.cost or 1
      admitted = assess(ask.limit, call.cells[ask.key], needed, now) == FITS_NOW
    end
  end
  if call.room == TIGHT then
    for index = 1, #asks do
      local ask = asks[index]
      local is_counted = ask.op <= TAKE_LEASE and ask.cost > 0
        and (admitted or ask.limit.counts_refused)
      if is_counted and not call.cells[ask.key] then
        return nil
      end
    end
  end
  local readings = {}
  for index = 1, #asks do
    local ask = asks[index]
    local limit, op = ask.limit, ask.op
    if op <= TAKE_LEASE then
      readings[index] = take(call, limit, ask, now, admitted)
    elseif op == RENEW then
      readings[index] = renew(call, limit, ask, now)
    else
      readings[index] = refund(call, limit, ask, now)
    end
  end
  return table.concat(readings)
end

local function decide_jobs(call, bytes, position)
  local answers = call.answers
  while position <= #bytes do
    local now, count
    now, count, position = unpack_bytes("<I7I4", bytes, position)
    check(now <= MAX, "now")
    local asks = {}
    for index = 1, count do
      asks[index], position = parse_ask(call, bytes, position)
    end
    local readings = decide_job(call, asks, now)
    answers[#answers + 1] = readings and "\0" .. readings or "\1"
  end
end
