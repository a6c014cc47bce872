-- The limits of a command, each in thirty bytes.

local LIMIT_BYTES = 30
-- Parsed limits, which a library keeps between calls. A script cannot keep them.
local MAX_KNOWN_LIMITS = 1000

local BUILD = {
  fixed_window_algorithm, sliding_window_algorithm, two_bucket_algorithm,
  sliding_log_algorithm, token_bucket_algorithm, concurrency_algorithm,
}
local algorithms = {}
local known_limits, known_limits_count = {}, 0

local function check(is_right, what)
  if not is_right then
    error("tollgate: " .. what)
  end
end

-- Parses and validates a limit.
local function parse_limit(bytes)
  local kind, refusals, quota, window, extra, skew_max = unpack_bytes("<BBI7I7I7I7", bytes, 1)
  check(BUILD[kind], "no such algorithm")
  check(quota >= 1 and quota <= MAX and window >= 1 and window <= MAX, "quota or window")
  check(extra <= MAX and skew_max <= MAX, "precision, burst or skew")
  local algorithm = algorithms[kind]
  if not algorithm then
    algorithm = BUILD[kind]()
    algorithms[kind] = algorithm
  end
  local limit = {
    kind = kind, counts_refused = refusals == 1,
    quota = quota, window = window, extra = extra, skew_max = skew_max,
    read = algorithm.read, take = algorithm.take, refund = algorithm.refund,
    take_refused = algorithm.take_refused or algorithm.take,
    renew = algorithm.renew, join = algorithm.join, over_at = algorithm.over_at,
  }
  if kind == SLIDING_WINDOW then
    check(extra >= 1, "precision")
    limit.blocks = div_ceil(window, extra)
  elseif kind == TWO_BUCKET then
    limit.largest_quota = floor((MAX - 1) / 2 / window)
  elseif kind == TOKEN_BUCKET then
    check(extra >= 1 and extra * window <= MAX, "burst")
    limit.full = extra * window
  end
  return limit
end

-- Returns `count` limits from `position` on, and the position after them.
local function parse_limits(bytes, position, count)
  local limits = {}
  for index = 1, count do
    local form = sub(bytes, position, position + LIMIT_BYTES - 1)
    local limit = known_limits[form]
    if not limit then
      limit = parse_limit(form)
      if known_limits_count >= MAX_KNOWN_LIMITS then
        known_limits, known_limits_count = {}, 0
      end
      known_limits[form] = limit
      known_limits_count = known_limits_count + 1
    end
    limits[index] = limit
    position = position + LIMIT_BYTES
  end
  return limits, position
end
