-- Carries one command out.
local function run(keys, arguments)
  if not floor then
    bind()
  end
  local bytes = arguments[1]
  local room, deadline, count, position = unpack_bytes("<BI7I4", bytes, 1)
  local clock = 0
  if deadline > 0 then
    local time = redis.call("TIME")
    clock = time[1] * 1000 + floor(time[2] / 1000)
    if clock > deadline then
      return "\1" .. pack("<I7", clock)
    end
  end
  local call = {
    room = room, keys = #keys, limits = {}, changes = {}, changed = {}, guards = {},
    answers = { "\0" .. pack("<I7", clock) },
  }
  for index = 1, count do
    call.limits[index] = parse_limit(bytes, position)
    position = position + LIMIT_BYTES
  end
  call.cells = read_cells(keys)
  decide_jobs(call, bytes, position)
  write_cells(call, keys)
  return table.concat(call.answers)
end
