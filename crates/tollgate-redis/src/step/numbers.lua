-- All numbers below are integers that a double represents exactly. They are validated on input: all
-- come from fixed-width unsigned bytes, so none is negative, a fraction or not a number.

local MAX = 9007199254740991 -- 2^53 - 1

local FITS_NOW, FITS_AT, FITS_NEVER = 0, 1, 2
local NOTHING, STATE, DISCARDED = 0, 1, 2

local FIXED_WINDOW, SLIDING_WINDOW, TWO_BUCKET = 1, 2, 3
local SLIDING_LOG, TOKEN_BUCKET, CONCURRENCY = 4, 5, 6
-- The most records in a stored list. Longer values are foreign.
local MAX_RECORDS = 10000
-- The command's flag for creating keys.
local TIGHT = 1
-- The kind of a foreign value under one of our keys.
local FOREIGN = 0

-- The digits by their bytes. A byte that is not a digit makes the result larger than every valid
-- number.
local DIGITS = {}
for code = 1, 57 do
  DIGITS[code] = code >= 48 and code - 48 or 1e300
end

local function no_digit()
  return 1e300
end

-- A library cannot see other libraries while it is loaded, so these are set by the first call.
local floor, pack, unpack_bytes, sub, rep, byte, find, call

local function bind()
  floor, pack, unpack_bytes = math.floor, struct.pack, struct.unpack
  sub, rep, byte, find, call = string.sub, string.rep, string.byte, string.find, redis.call
  setmetatable(DIGITS, { __index = no_digit })
end

-- Returns the time `by` later.
local function after(moment, by)
  local later = moment + by
  if later > MAX then
    return MAX
  end
  return later
end

-- Returns a / b rounded up. The quotient of two integers below 2^53 never rounds up to the next
-- integer.
local function div_ceil(a, b)
  local quotient = floor(a / b)
  if quotient * b < a then
    return quotient + 1
  end
  return quotient
end
