-- The step: reads every key of a command at once, decides its jobs, and writes what changed at the
-- end. Until then an error leaves everything as it was.
--
-- KEYS: the keys, each once. ARGV[1]: the command, in little-endian bytes:
--   room (0: new keys are fine, 1: none), deadline in ms on this server's clock (0: none),
--   the number of limits, the limits, the jobs, each with at least one ask, or runs of jobs.
-- The answer, in the same form: 1 if the deadline had passed, else 0; this server's clock in ms
-- (0: was not asked); the answers to the jobs.
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
  -- Tables are dear, and an error may have left them full.
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
