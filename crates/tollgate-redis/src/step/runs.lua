-- Runs: consecutive jobs of one charge each, with the same limit, cost and time.

-- Returns the answer to a charge that is the only one in its job, on any kind of limit.
local function take_alone(limit, key, cost, now)
  open_cell(key)
  if room == TIGHT then
    return decide_job({ { op = TAKE, limit = limit, key = key, cost = cost } }, now)
  end
  return DECIDED .. take(limit, key, cost, nil, now, nil)
end

-- Appends the answers to `jobs` charges on one key. Returns the new number of answers.
local function take_repeatedly(limit, key, cost, now, jobs, answers, answered)
  local answer = take_repeatedly_from_window(limit, key, cost, now, jobs)
  if answer then
    answers[answered + 1] = answer
    return answered + 1
  end
  for index = answered + 1, answered + jobs do
    answers[index] = take_alone(limit, key, cost, now)
  end
  return answered + jobs
end

-- Appends the answers to a charge on each of the keys from `key` to `last_key`. For speed, a
-- window's first charge in the command is handled inline.
local function take_each(limit, key, last_key, cost, now, answers, answered)
  local first, last = 1, 0
  if limit.kind == FIXED_WINDOW and cost > 0 and room ~= TIGHT then
    first, last = resets_in_force(limit, now)
  end
  local quota, counts_refused = limit.quota, limit.counts_refused
  local most = (quota < LARGEST_PACKED_USED and quota or LARGEST_PACKED_USED) - cost
  local values, counted, read_digits, opened = values, counted, read_digits, last_opened
  last_opened = last_key > opened and last_key or opened
  for key = key, last_key do
    local bytes, resets_at, used = values[key], 0, 0
    if bytes and #bytes == 19 and key > opened then
      resets_at, used = read_digits(bytes)
    end
    if resets_at < first or resets_at > last or used > LARGEST_PACKED_USED then
      answered = take_repeatedly(limit, key, cost, now, 1, answers, answered)
    elseif used <= most then
      counted[key] = cost
      answered = answered + 1
      answers[answered] = bytes
    elseif used > quota - cost and not counts_refused then
      answered = answered + 1
      answers[answered] = REFUSED .. bytes
    else
      answered = answered + 1
      answers[answered] = take_alone(limit, key, cost, now)
    end
  end
  return answered
end
