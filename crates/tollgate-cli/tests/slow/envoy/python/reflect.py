"""Asks by what the server itself tells of its messages, as grpcurl does, and prints JSON."""

import json
import sys

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)


def called(channel, method, request):
    message = json_format.ParseDict(
        request, message_factory.GetMessageClass(method.input_type)()
    )
    call = channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
    )
    return json_format.MessageToDict(call(message))


with grpc.insecure_channel(sys.argv[1]) as channel:
    files = ProtoReflectionDescriptorDatabase(channel)
    pool = DescriptorPool(files)
    services = sorted(files.get_services())
    limits = pool.FindServiceByName("envoy.service.ratelimit.v3.RateLimitService")
    health = pool.FindServiceByName("grpc.health.v1.Health")
    entries = [{"key": "remote_address", "value": "192.0.2.2"}]
    request = {"domain": "edge", "descriptors": [{"entries": entries, "hitsAddend": 2}]}
    print(json.dumps({
        "services": services,
        "health": called(channel, health.methods_by_name["Check"], {}),
        "answer": called(channel, limits.methods_by_name["ShouldRateLimit"], request),
    }))
