#!lua flags=no-writes,allow-stale
-- Returns for each command in ARGV whether the caller may send it: '1' or '0'. A command that the
-- server does not support counts as '0'. The check sends no command, and adds no entry to the
-- server's ACL LOG.
local may = {}
for index, line in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word end
  local is_known, is_permitted = pcall(redis.acl_check_cmd, unpack(words))
  may[index] = is_known and is_permitted and '1' or '0'
end
return table.concat(may)
