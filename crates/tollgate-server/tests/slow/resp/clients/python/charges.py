"""Charges through redis-py; prints what it was told as JSON.

Arguments: port, password (or an empty one), version of the protocol.
"""

import json
import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

port, password, protocol = sys.argv[1:]


def connect(password):
    # Trying again does not make a wrong password right.
    once = Retry(NoBackoff(), 0)
    return redis.Redis(
        port=int(port), password=password or None, protocol=int(protocol), retry=once
    )


client = connect(password)
told = {
    "ping": client.ping(),
    "charges": [client.execute_command("CL.THROTTLE", "py", 1, 1, 60) for _ in range(3)],
    "throttle": client.execute_command("THROTTLE", "py", 2, 1, 60),
}

pipeline = client.pipeline(transaction=False)
for key in range(100):
    pipeline.execute_command("CL.THROTTLE", f"py:{key % 50}", 0, 1, 60)
told["limited"] = [reply[0] for reply in pipeline.execute()]

charge = client.execute_command("TG.CHARGE", "core", 2, "token", "py")
told["map"] = isinstance(charge, dict)
charge = charge if told["map"] else dict(zip(charge[::2], charge[1::2]))
told["admitted"] = charge[b"admitted"]
refund = client.execute_command("TG.REFUND", charge[b"receipt"])
refund = refund if told["map"] else dict(zip(refund[::2], refund[1::2]))
told["outcome"] = refund[b"outcome"].decode()

try:
    client.execute_command("CL.THROTTLE", "py")
except redis.ResponseError as error:
    told["error"] = str(error)

try:
    told["wrong password"] = connect("wrong" if password else "").ping()
except redis.AuthenticationError as error:
    told["wrong password"] = str(error)

told["cells"] = client.execute_command("COMMAND INFO", "CL.THROTTLE") is not None
print(json.dumps(told))
