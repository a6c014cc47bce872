"""What retryheader reads of the answer to one request, as JSON."""

import json
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

from retryheader import delay_from_headers, parse_ratelimit, parse_ratelimit_policy

try:
    with urlopen(sys.argv[1]) as answer:
        headers = answer.headers
except HTTPError as refusal:
    headers = refusal.headers

standings = parse_ratelimit(headers["ratelimit"])
policies = parse_ratelimit_policy(headers["ratelimit-policy"])
print(
    json.dumps(
        {
            "standings": [[each.policy, each.remaining, each.window] for each in standings],
            "policies": [[each.name, each.quota, each.window, each.unit] for each in policies],
            "delay": delay_from_headers(headers),
            "retry_after": headers["retry-after"],
        }
    )
)
