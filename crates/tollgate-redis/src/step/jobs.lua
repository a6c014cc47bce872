-- Executes the jobs of a command one after the other, each all or nothing.

local TAKE, TAKE_LEASE, REFUND, REFUND_GUARDED, REFUND_LEASE, RENEW, LOOK = 1, 2, 3, 4, 5, 6, 7
local FORGET, CELL, JOIN = 11, 12, 13
local RESERVE, EXTEND, SETTLE = 14, 15, 16
-- A job of charges on different keys, each on a fixed window.
local TAKE_ALL = 8
-- Many jobs of one charge each: on consecutive keys, or on one key.
local TAKE_EACH, TAKE_REPEATEDLY = 9, 10

-- The first byte of an answer. DECIDED: readings follow. FULL: no key may be created. REFUSED: the
-- job was refused, and its windows follow. REPEATED: a number of jobs, the number of admitted ones,
-- and their window follow. If open windows admit a job, its answer is these windows.
local DECIDED, FULL, REFUSED, REPEATED = "\0", "\1", "\2", "\3"

-- Parses the rest of a charge after its operation, limit, key and cost; returns it and the position
-- after it.
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
    open_cell(ask.guard)
  elseif op == JOIN then
    local cell
    cell, position = unpack_bytes("<I4c0", bytes, position)
    ask.cell = unpack_tagged(cell)
    check(ask.cell and ask.cell.kind == limit.kind, "cell")
  elseif op == RESERVE then
    local flag
    ask.id, ask.ends, ask.most, flag, position = unpack_bytes("<c16I7I7B", bytes, position)
    ask.is_charged = flag == 1
    check(ask.ends <= MAX and ask.most <= MAX, "end or number of units held")
  elseif op == EXTEND then
    ask.id, ask.ends, position = unpack_bytes("<c16I7", bytes, position)
    check(ask.ends <= MAX, "end")
  elseif op == SETTLE then
    ask.id, ask.most, position = unpack_bytes("<c16I7", bytes, position)
    check(ask.most <= MAX, "units used at most")
  else
    check(op == TAKE or op == LOOK or op == FORGET or op == CELL, "no such ask")
  end
  open_cell(key)
  if op >= RESERVE then
    check(op == SETTLE or limit.kind ~= CONCURRENCY, "lease")
    return ask, position
  end
  local has_lease = limit.kind == CONCURRENCY and op ~= LOOK and op < FORGET
  check((ask.id ~= nil) == (has_lease or op == RENEW), "lease")
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
    elseif ask.op == RESERVE then
      if assess_reservation(ask.limit, cells[ask.key], ask, now) ~= FITS_NOW then
        return false
      end
    end
  end
  return true
end

-- Returns whether a charge or a joined cell of the job would create a key.
local function needs_key(asks, is_admitted)
  for index = 1, #asks do
    local ask = asks[index]
    local is_counted = is_admitted or ask.limit.counts_refused
    local takes = ask.op <= TAKE_LEASE or ask.op == RESERVE
    local is_kept = takes and ask.cost > 0 and is_counted or ask.op == JOIN
    if is_kept and not cells[ask.key] then
      return true
    end
  end
  return false
end

-- Returns the answer to one job.
local function decide_job(asks, now)
  local is_admitted = is_admitted_by_all(asks, now)
  if room == TIGHT and needs_key(asks, is_admitted) then
    return FULL
  end
  local readings = { DECIDED }
  for index = 1, #asks do
    local ask = asks[index]
    local limit, op = ask.limit, ask.op
    if op <= TAKE_LEASE then
      readings[index + 1] = take(limit, ask.key, ask.cost, ask.id, now, is_admitted)
    elseif op == LOOK then
      readings[index + 1] = look(limit, ask.key, ask.cost, now)
    elseif op == RESERVE then
      readings[index + 1] = reserve(limit, ask, now, is_admitted)
    elseif op == EXTEND then
      readings[index + 1] = extend(limit, ask, now)
    elseif op == SETTLE then
      readings[index + 1] = settle(limit, ask, now)
    elseif op == RENEW then
      readings[index + 1] = renew(limit, ask, now)
    elseif op == FORGET then
      readings[index + 1] = forget(limit, ask.key, now)
    elseif op == CELL then
      readings[index + 1] = append_cell(limit, ask.key, now)
    elseif op == JOIN then
      join_cell(limit, ask.key, ask.cell, now)
      readings[index + 1] = ""
    else
      readings[index + 1] = refund(limit, ask, now)
    end
  end
  return table.concat(readings)
end

