-- The stored values: one string for each limit and subject.
--
-- A fixed window is one integer, `resets_at` followed by six digits of `used`. Redis stores it
-- without a string, and INCRBY counts in it. Windows that do not fit into it, and the other
-- algorithms, are a letter followed by records of little-endian numbers of seven bytes each. A
-- refund that must not be repeated has its own key: `r` and the time until which it is remembered.
-- Reservations precede the state that they belong to: `h`, their number and their records.

local LARGEST_PACKED_USED = 999999
-- The largest reset with which the integer fits into Redis' signed 64 bits.
local LATEST_PACKED_RESET = 9223372036853
-- The first reset with which the integer has nineteen digits.
local FIRST_LONG_RESET = 1000000000000
-- The number of records that are unpacked to Lua's stack at once.
local CHUNK = 500

local TAGS = { "f", "w", "e", "l", "t", "c" }
local KINDS = { f = 1, w = 2, e = 3, l = 4, t = 5, c = 6 }
local RECORDS = { "I7I7", "I7I7", "I7I7I7", "I7I7", "I7I7", "c16I7I7" }
local RECORD_BYTES = { 14, 14, 21, 14, 14, 30 }

-- Reads the reset and the count from nineteen digits. If one byte is not a digit, the result is
-- larger than every window.
local function read_digits(bytes)
  local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s = byte(bytes, 1, 19)
  local digit = DIGITS
  local resets_at = (((((((((((digit[a] * 10 + digit[b]) * 10 + digit[c]) * 10
    + digit[d]) * 10 + digit[e]) * 10 + digit[f]) * 10 + digit[g]) * 10
    + digit[h]) * 10 + digit[i]) * 10 + digit[j]) * 10 + digit[k]) * 10
    + digit[l]) * 10 + digit[m]
  local used = ((((digit[n] * 10 + digit[o]) * 10 + digit[p]) * 10
    + digit[q]) * 10 + digit[r]) * 10 + digit[s]
  return resets_at, used
end

local function unpack_window(bytes)
  local size, resets_at, used = #bytes, nil, nil
  if size == 19 then
    resets_at, used = read_digits(bytes)
  elseif size >= 7 and size < 19 and find(bytes, "^%d+$") then
    resets_at, used = sub(bytes, 1, -7) + 0, sub(bytes, -6) + 0
  else
    return nil
  end
  -- A value with a leading zero is not an integer for Redis.
  if resets_at > LATEST_PACKED_RESET or used > LARGEST_PACKED_USED or byte(bytes) == 48 then
    return nil
  end
  return { kind = FIXED_WINDOW, resets_at = resets_at, used = used, packed_used = used }
end

-- Returns the numbers of a series or of permits, or nil if they are out of order or out of range.
local function unpack_list(bytes, kind, records)
  local width = kind == CONCURRENCY and 3 or 2
  local place = kind == CONCURRENCY and 3 or 1
  local list = {}
  for done = 0, records - 1, CHUNK do
    local count = records - done < CHUNK and records - done or CHUNK
    local form = "<" .. rep(RECORDS[kind], count)
    local part = { unpack_bytes(form, bytes, 2 + done * RECORD_BYTES[kind]) }
    for index = 1, count * width do
      list[done * width + index] = part[index]
    end
  end
  -- Positions rise strictly, but permits may expire at the same time. Only the newest of a series
  -- may be empty.
  local lowest, last = 0, #list - width
  for index = 0, last, width do
    local at, units = list[index + place], list[index + 2]
    local is_empty = units == 0 and (kind == CONCURRENCY or index < last)
    if is_empty or at < lowest or at > MAX or units > MAX then
      return nil
    end
    lowest = kind == CONCURRENCY and at or at + 1
  end
  return list
end

local function unpack_numbers(bytes, kind)
  local a, b, c = unpack_bytes("<" .. RECORDS[kind], bytes, 2)
  if a > MAX or b > MAX or kind == TWO_BUCKET and c > MAX then
    return nil
  elseif kind == FIXED_WINDOW then
    return { kind = kind, resets_at = a, used = b }
  elseif kind == TWO_BUCKET then
    return { kind = kind, bucket = a, previous = b, current = c }
  end
  return { kind = kind, level = a, at = b }
end

-- Returns the cell after its reservations.
local function unpack_held(bytes, unpack_tagged)
  local holds, position = unpack_holds(bytes)
  local cell = holds and unpack_tagged(sub(bytes, position))
  if not cell or cell.holds or cell.kind == FOREIGN or cell.kind == CONCURRENCY then
    return nil
  end
  cell.holds = holds
  return cell
end

local function unpack_tagged(bytes)
  local tag = sub(bytes, 1, 1)
  if tag == "h" then
    return unpack_held(bytes, unpack_tagged)
  end
  if tag == "r" and #bytes == 8 then
    return { kind = FOREIGN, remembered_until = unpack_bytes("<I7", bytes, 2) }
  end
  local kind = KINDS[tag]
  if not kind then
    return nil
  end
  local records = (#bytes - 1) / RECORD_BYTES[kind]
  if records < 1 or records > MAX_RECORDS or records ~= floor(records) then
    return nil
  end
  if kind == SLIDING_WINDOW or kind == SLIDING_LOG or kind == CONCURRENCY then
    local list = unpack_list(bytes, kind, records)
    return list and { kind = kind, list = list, first = 1 }
  end
  return records == 1 and unpack_numbers(bytes, kind)
end

local function pack_list(cell)
  local kind, list = cell.kind, cell.list
  local width = kind == CONCURRENCY and 3 or 2
  local parts = { TAGS[kind] }
  for from = cell.first or 1, #list, CHUNK * width do
    local to = from + CHUNK * width - 1
    to = to < #list and to or #list
    parts[#parts + 1] = pack("<" .. rep(RECORDS[kind], (to - from + 1) / width), unpack(list, from, to))
  end
  return table.concat(parts)
end

-- Returns a cell as a letter and records, whatever its kind.
local function pack_tagged(cell)
  local kind, holds = cell.kind, cell.holds
  if holds then
    cell.holds = nil
    local bytes = pack_holds(holds) .. pack_tagged(cell)
    cell.holds = holds
    return bytes
  elseif cell.list then
    return pack_list(cell)
  elseif kind == FIXED_WINDOW then
    return TAGS[kind] .. pack("<I7I7", cell.resets_at, cell.used)
  elseif kind == TWO_BUCKET then
    return TAGS[kind] .. pack("<I7I7I7", cell.bucket, cell.previous, cell.current)
  end
  return TAGS[kind] .. pack("<I7I7", cell.level, cell.at)
end

local function pack_cell(cell)
  if cell.kind == FIXED_WINDOW and not cell.holds then
    local resets_at, used = cell.resets_at, cell.used
    if used <= LARGEST_PACKED_USED and resets_at <= LATEST_PACKED_RESET then
      return string.format("%.0f%06.0f", resets_at, used)
    end
  end
  return pack_tagged(cell)
end

-- Returns whether a cell is missing or without any content, so its key can be deleted.
local function is_blank(cell)
  return not cell or cell.list ~= nil and #cell.list == 0
end
