"""Asks with the messages and the client of another project, and prints the answers as JSON."""

import json
import sys

import grpc
from envoy_data_plane.envoy.extensions.common.ratelimit.v3 import (
    RateLimitDescriptor,
    RateLimitDescriptorEntry,
    RateLimitDescriptorRateLimitOverride,
)
from envoy_data_plane.envoy.service.ratelimit.v3 import (
    RateLimitRequest,
    RateLimitServiceSyncStub,
)
from envoy_data_plane.envoy.type.v3 import RateLimitUnit


def descriptor(*entries, **more):
    entries = [RateLimitDescriptorEntry(key=key, value=value) for key, value in entries]
    return RateLimitDescriptor(entries=entries, **more)


def requests():
    address = ("remote_address", "192.0.2.1")
    yield RateLimitRequest(domain="edge", descriptors=[descriptor(address)])
    yield RateLimitRequest(domain="edge", descriptors=[descriptor(address)], hits_addend=3)
    yield RateLimitRequest(domain="edge", descriptors=[descriptor(address, hits_addend=0)])
    back = descriptor(address, hits_addend=2, is_negative_hits=True)
    yield RateLimitRequest(domain="edge", descriptors=[back])
    week = RateLimitDescriptorRateLimitOverride(requests_per_unit=1, unit=RateLimitUnit.YEAR)
    brought = descriptor(address, limit=week)
    yield RateLimitRequest(domain="edge", descriptors=[brought, descriptor(address)])
    yield RateLimitRequest(domain="edge", descriptors=[brought, descriptor(address)])
    yield RateLimitRequest(domain="", descriptors=[brought])


def asked(stub, request):
    try:
        return stub.should_rate_limit(request).to_dict()
    except grpc.RpcError as error:
        return {"status": error.code().name, "details": error.details()}


with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = RateLimitServiceSyncStub(channel)
    print(json.dumps([asked(stub, request) for request in requests()]))
