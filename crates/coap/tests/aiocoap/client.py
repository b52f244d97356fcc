"""Asks a server of CoAP by aiocoap, and prints an object of JSON for each answer.

client.py METHOD URI [--payload-hex HEX] [--format N] [--accept N] [--observe N] [--non]
"""

import argparse
import asyncio
import json

from aiocoap import Code, Context, Message, Type


def show(answer):
    print(
        json.dumps(
            {
                "code": answer.code.dotted,
                "format": None if answer.opt.content_format is None else int(answer.opt.content_format),
                "max_age": answer.opt.max_age,
                "observe": answer.opt.observe,
                "payload_hex": answer.payload.hex(),
            }
        ),
        flush=True,
    )


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("method")
    parser.add_argument("uri")
    parser.add_argument("--payload-hex", default="")
    parser.add_argument("--format", type=int)
    parser.add_argument("--accept", type=int)
    parser.add_argument("--observe", type=int, default=0)
    parser.add_argument("--non", action="store_true")
    asked = parser.parse_args()
    context = await Context.create_client_context()
    message = Message(
        code=getattr(Code, asked.method),
        uri=asked.uri,
        payload=bytes.fromhex(asked.payload_hex),
        mtype=Type.NON if asked.non else Type.CON,
    )
    if asked.format is not None:
        message.opt.content_format = asked.format
    if asked.accept is not None:
        message.opt.accept = asked.accept
    if asked.observe:
        message.opt.observe = 0
    request = context.request(message)
    show(await request.response)
    if asked.observe:
        left = asked.observe
        async for notification in request.observation:
            show(notification)
            left -= 1
            if not left:
                break
        request.observation.cancel()
    await context.shutdown()


asyncio.run(main())
