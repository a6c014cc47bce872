-- Replaces a shared document and its version, if the stored version is the expected version.
-- Returns 1 if the document was replaced, otherwise 0.
--
-- KEYS: the keys of the version and of the document. ARGV: the expected version, the new version,
-- the new document, the time to live of both keys in ms. If the server evicted one of the two keys,
-- the stored version is empty.
local function replace(keys, arguments)
  local kept = redis.call("MGET", keys[1], keys[2])
  local version = kept[1] and kept[2] and kept[1] or ""
  if version ~= arguments[1] then
    return 0
  end
  redis.call("SET", keys[1], arguments[2], "PX", arguments[4])
  redis.call("SET", keys[2], arguments[3], "PX", arguments[4])
  return 1
end
