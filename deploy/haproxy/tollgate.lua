-- Queries Tollgate whether a request is admitted: `http-request lua.tollgate ADDRESS`. ADDRESS is that of a
-- frontend of this HAProxy that forwards to Tollgate.
--
-- Sets txn.tollgate_status to the status of the response, or to 0 if there was none, txn.tollgate_body and
-- txn.tollgate_type to the body of a refusal and its media type, and the variables below to the header
-- fields for clients.

-- In milliseconds. Longer than the timeouts of that backend, so those apply.
local TIMEOUT = 1000

-- One of the listener's tokens, if it requires one.
local TOKEN = nil

-- Fields of one connection or one body, and fields that only a proxy may set.
local NOT_PASSED_ON = {
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
    "x-original-method", "x-original-uri", "x-tollgate-token",
}

local VARIABLES = {
    ["x-ratelimit-limit"] = "txn.tollgate_limit",
    ["x-ratelimit-remaining"] = "txn.tollgate_remaining",
    ["x-ratelimit-used"] = "txn.tollgate_used",
    ["x-ratelimit-reset"] = "txn.tollgate_reset",
    ["x-ratelimit-resource"] = "txn.tollgate_resource",
    ["ratelimit-policy"] = "txn.tollgate_policies",
    ["ratelimit"] = "txn.tollgate_standings",
    ["retry-after"] = "txn.tollgate_retry_after",
}

-- HAProxy indexes the values of a field from 0, and its HTTP client those that it sends from 1.
local function from_one(values)
    local lines = {}
    for index = 0, #values do
        lines[index + 1] = values[index]
    end
    return lines
end

local function sub_request(txn)
    local fields = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        fields[name] = from_one(values)
    end
    local host = fields["host"]
    for _, name in ipairs(NOT_PASSED_ON) do
        fields[name] = nil
    end
    fields["x-forwarded-method"] = { txn.sf:method() }
    fields["x-forwarded-uri"] = { txn.sf:pathq() }
    fields["x-forwarded-host"] = host
    -- Behind another proxy, append this address to its value, and add that proxy to trusted_proxies.
    fields["x-forwarded-for"] = { txn.sf:src() }
    fields["x-tollgate-token"] = TOKEN and { TOKEN }
    return fields
end

-- Whether the response is Tollgate's own. The status does not show this, because a policy can refuse requests
-- with any status, and the media type can be one that the client prefers.
local function is_from_tollgate(answer)
    return answer.headers and answer.headers["tollgate-decision"] ~= nil
end

-- Whether Tollgate is up. If it is down, HAProxy responds with a page of its own. Another such page means that
-- the sub-request is invalid, and such a request is not admitted.
local function is_there(answer)
    local status = answer and answer.status or 0
    local is_gone = status == 0 or status == 502 or status == 503 or status == 504
    return not is_gone or is_from_tollgate(answer)
end

local function ask(txn, address)
    local answer = core.httpclient():get {
        url = "http://tollgate/v1/authorize",
        dst = address,
        headers = sub_request(txn),
        timeout = TIMEOUT,
    }
    if not is_there(answer) then
        txn:set_var("txn.tollgate_status", 0)
        return
    end
    txn:set_var("txn.tollgate_status", answer.status)
    txn:set_var("txn.tollgate_body", answer.body or "")
    local media_type = answer.headers["content-type"]
    if media_type then
        txn:set_var("txn.tollgate_type", media_type[0])
    end
    for name, variable in pairs(VARIABLES) do
        local values = answer.headers[name]
        if values then
            txn:set_var(variable, table.concat(from_one(values), ", "))
        end
    end
end

core.register_action("tollgate", { "http-req" }, ask, 1)
