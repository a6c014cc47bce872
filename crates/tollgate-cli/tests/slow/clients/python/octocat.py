"""PyGithub, at the API that the first argument names; the second says what it does there.

Prints what it met as JSON.
"""

import json
import sys

from github import Auth, Github, GithubException, GithubRetry, RateLimitExceededException

# Far more than any scenario needs until it is told to wait.
MOST_REQUESTS = 200


class Retry(GithubRetry):
    """PyGithub's own, which also writes down what it met."""

    met = []

    def increment(self, method=None, url=None, response=None, *rest, **more):
        if response is not None:
            self.met.append({"status": response.status, "headers": lower(response.headers)})
        return super().increment(method, url, response, *rest, **more)


def recover(base_url, token):
    """Asks one after another until it had to wait once. The request that waited is the last."""
    api = client(base_url, token, Retry())
    asked = 0
    while not Retry.met and asked < MOST_REQUESTS:
        assert api.get_user().login == "octocat"
        asked += 1
    remaining, limit = api.rate_limiting
    reset = api.rate_limiting_resettime
    return {"asked": asked, "met": Retry.met, "limit": limit, "remaining": remaining, "reset": reset}


def exhaust(base_url, token):
    """Asks until it is refused, and takes no for an answer."""
    api = client(base_url, token, None)
    before = api.get_rate_limit()
    for asked in range(MOST_REQUESTS):
        try:
            api.get_user("octocat")
        except GithubException as refusal:
            return {
                "free": before.rate.remaining,
                "admitted": asked,
                "status": refusal.status,
                "message": refusal.data["message"],
                "is_rate_limit": isinstance(refusal, RateLimitExceededException),
                "headers": lower(refusal.headers),
            }
    raise SystemExit("never refused")


def client(base_url, token, retry):
    auth = Auth.Token(token) if token else None
    return Github(base_url=base_url, auth=auth, retry=retry, seconds_between_requests=None)


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


if __name__ == "__main__":
    BASE_URL, SCENARIO, TOKEN = sys.argv[1:]
    print(json.dumps({"recover": recover, "exhaust": exhaust}[SCENARIO](BASE_URL, TOKEN)))
