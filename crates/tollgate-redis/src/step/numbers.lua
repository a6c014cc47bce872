-- Every number below is an integer that a double holds exactly, and is checked when it comes in:
-- all come from fixed-width unsigned bytes, so none is negative, a fraction or not a number.

local MAX = 9007199254740991 -- 2^53 - 1

local FITS_NOW, FITS_AT, FITS_NEVER = 0, 1, 2
local NOTHING, STATE, DISCARDED = 0, 1, 2

local FIXED_WINDOW, SLIDING_WINDOW, TWO_BUCKET = 1, 2, 3
local SLIDING_LOG, TOKEN_BUCKET, CONCURRENCY = 4, 5, 6
-- What a command says of the room for keys.
local TIGHT = 1
-- The kind of what lies under our key and is not ours.
local FOREIGN = 0

-- Digits by their bytes. What is no digit outweighs every number that is read from digits.
local DIGITS = {}
for code = 1, 57 do
  DIGITS[code] = code >= 48 and code - 48 or 1e300
end

local function no_digit()
  return 1e300
end

-- While a library is loaded it sees no other library: these are bound by the first call.
local floor, pack, unpack_bytes, sub, rep, byte, find, call

local function bind()
  floor, pack, unpack_bytes = math.floor, struct.pack, struct.unpack
  sub, rep, byte, find, call = string.sub, string.rep, string.byte, string.find, redis.call
  setmetatable(DIGITS, { __index = no_digit })
end

-- A moment `by` later.
local function after(moment, by)
  local later = moment + by
  if later > MAX then
    return MAX
  end
  return later
end

-- a / b rounded up. The quotient of two integers below 2^53 never rounds up to the next integer.
local function div_ceil(a, b)
  local quotient = floor(a / b)
  if quotient * b < a then
    return quotient + 1
  end
  return quotient
end
