-- The step: reads all keys of a command at once, executes its jobs, and writes the changes at the
-- end. An error before the end changes nothing.
--
-- KEYS: the keys, each once. ARGV[1]: the command, in little-endian bytes: whether keys may be
-- created (0: yes, 1: no), the deadline in ms by this server's clock (0: none), the number of
-- limits, the limits, and the jobs, each with at least one charge, or runs of jobs. The answer, in
-- the same form: 1 if the deadline had passed, otherwise 0; this server's clock in ms (0: not
-- requested); the answers to the jobs.
local NO_CLOCK = "\0\0\0\0\0\0\0\0"

local function run(keys, arguments)
  if not floor then
    bind()
  end
  local bytes = arguments[1]
  local deadline, limit_count, limits, position
  room, deadline, limit_count, position = unpack_bytes("<BI7I4", bytes, 1)
  local clock = 0
  if deadline > 0 then
    local time = call("TIME")
    clock = time[1] * 1000 + floor(time[2] / 1000)
    if clock > deadline then
      return "\1" .. pack("<I7", clock)
    end
  end
  -- Creating tables is expensive. They are only full here if an earlier call failed.
  if changed[1] or guards[1] then
    changed, changed_by, changed_at, guards = {}, {}, {}, {}
  end
  limits, position = parse_limits(bytes, position, limit_count)
  read_values(keys)
  local answers = { clock == 0 and NO_CLOCK or pack("<BI7", 0, clock) }
  decide_jobs(bytes, position, limits, #keys, answers)
  write_cells(keys)
  names, values = nil, nil
  return table.concat(answers)
end
